"""Instances for tests, and strategies that generate them."""

from datetime import UTC, datetime

from hypothesis import strategies as st
from msgspec.structs import replace

from teraflock.base.quantities import GIB
from teraflock.base.size import Size
from teraflock.fleet.model import GpuKind, HostId
from teraflock.instance.model import Access, Held, HeldGpu, HeldPort, Instance, InstanceId, Spec
from teraflock.instance.states import Phase, Wanted
from teraflock.tenant.model import MemberId, ProjectId

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

shapes = st.builds(
    Size,
    gpu=st.just("V100-SXM2"),
    gpus=st.integers(1, 4),
    vcpus=st.integers(1, 64),
    ram_bytes=st.integers(1, 64).map(lambda count: count * GIB),
    disk_bytes=st.integers(1, 64).map(lambda count: count * GIB),
)


def slots(count: int, first: int = 1) -> tuple[HeldGpu, ...]:
    numbers = range(first, first + count)
    return tuple(HeldGpu(f"0000:{number:02x}:00.0", GpuKind.PHYSICAL, "V100-SXM2") for number in numbers)


def queued(shape: Size) -> Instance:
    """An instance after a launch: everything is claimed, nothing exists on an engine."""
    return Instance(
        id=InstanceId("ins_0000000000000001"),
        project_id=ProjectId("prj_0000000000000001"),
        name="heron",
        wanted=Wanted.RUNNING,
        wanted_at=NOW,
        phase=Phase.QUEUED,
        shape=shape,
        held=Held(
            vcpus=shape.vcpus,
            ram_bytes=shape.ram_bytes,
            disk_bytes=shape.disk_bytes,
            gpus=slots(shape.gpus),
            ports=(HeldPort(20_000, 22),),
        ),
        image="base",
        access=Access.SSH,
        spec=Spec(),
        labels={"team": "birds"},
        host_id=HostId("hst_0000000000000001"),
        address="10.128.0.16",
        created_at=NOW,
        created_by=MemberId("mem_0000000000000001"),
        due_at=NOW,
    )


def standing(phase: Phase, wanted: Wanted = Wanted.RUNNING) -> Instance:
    """An instance without an operation."""
    shape = Size(gpu="V100-SXM2", gpus=1, vcpus=4, ram_bytes=8 * GIB, disk_bytes=8 * GIB)
    return replace(queued(shape), phase=phase, wanted=wanted, settled=True)
