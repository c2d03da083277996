"""Which instances may be created again on another host."""

from msgspec.structs import replace
from tests.unit.instance.samples import queued

from teraflock.base.size import Size
from teraflock.instance.copy.rules import is_movable
from teraflock.instance.model import RestartPolicy, Spec
from teraflock.instance.volume.model import VolumeMount

SHAPE = Size(gpu="", gpus=0, vcpus=1, ram_bytes=1 << 30, disk_bytes=1 << 30)


def test_instance_with_a_volume_stays_on_its_host() -> None:
    plain = replace(queued(SHAPE), spec=Spec(restart_policy=RestartPolicy.ELSEWHERE, recipe="base"))
    assert is_movable(plain)
    volume = VolumeMount("vol_0000000000000001", "/volumes/results", "hst_0000000000000001")
    assert not is_movable(replace(plain, volumes=(volume,)))
