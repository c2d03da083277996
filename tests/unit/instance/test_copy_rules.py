"""Which instances may be created again on another host, and which copies of disks are no longer needed."""

from datetime import UTC, datetime

from msgspec.structs import replace
from tests.unit.instance.samples import queued

from teraflock.base.size import Size
from teraflock.fleet.model import HostId
from teraflock.instance.copy.model import DiskCopy
from teraflock.instance.copy.rules import is_movable, obsolete
from teraflock.instance.copy.states import CopyState
from teraflock.instance.model import RestartPolicy, Spec
from teraflock.instance.volume.model import VolumeMount

SHAPE = Size(gpu="", gpus=0, vcpus=1, ram_bytes=1 << 30, disk_bytes=1 << 30)


def test_instance_with_a_volume_stays_on_its_host() -> None:
    plain = replace(queued(SHAPE), spec=Spec(restart_policy=RestartPolicy.ELSEWHERE, recipe="base"))
    assert is_movable(plain)
    volume = VolumeMount("vol_0000000000000001", "/volumes/results", "hst_0000000000000001")
    assert not is_movable(replace(plain, volumes=(volume,)))


def test_copy_on_a_removed_host_is_obsolete() -> None:
    there = replace(queued(SHAPE), spec=Spec(restart_policy=RestartPolicy.ELSEWHERE, recipe="base"))
    now = datetime(2026, 11, 15, tzinfo=UTC)
    copy = DiskCopy(
        id="cpy_1", instance_id=there.id, host_id=HostId("hst_2"), site="lab2", source_site="lab1",
        state=CopyState.READY, made_at=now, touched_at=now,
    )  # fmt: skip
    assert obsolete([copy], {there.id: there}, now) == ()
    assert obsolete([copy], {there.id: there}, now, frozenset({"hst_2"})) == (copy,)
