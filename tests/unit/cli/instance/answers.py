"""Responses of a server for tests."""

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from teraflock.wire.instance import InstanceAnswer, SshAnswer
from teraflock.wire.shape import ShapeAnswer

MADE_AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHostKeyOfTheGuest"
CPUS = ShapeAnswer(gpu="", gpu_name="", gpus=0, vcpus=2, ram_bytes=4 << 30, disk_bytes=8 << 30)
CARDS = replace(CPUS, gpu="V100-SXM2", gpu_name="Tesla V100 SXM2 16 GB", gpus=2)
INSTANCE = InstanceAnswer(
    id="ins_01j0000000000000",
    name="web",
    project_id="prj_01j0000000000000",
    state="running",
    wanted="running",
    operation=None,
    step=None,
    problem="",
    shape=CPUS,
    gpus=(),
    image="base",
    access="ssh",
    command=(),
    exit_code=None,
    labels={},
    host="lab1",
    private_address="10.128.0.5",
    ssh=SshAnswer(host="192.0.2.7", port=20001, user="root", host_key=HOST_KEY),
    jupyter=None,
    simulated=False,
    created_at=MADE_AT,
    created_by="mem_01j0000000000000",
    running_since=MADE_AT,
)


def instance(**changes: Any) -> InstanceAnswer:
    return replace(INSTANCE, **changes)
