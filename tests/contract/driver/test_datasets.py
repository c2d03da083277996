"""Datasets on every engine that keeps them: one copy on a host, which many guests read and none can change."""

import itertools
from hashlib import sha256

import pytest
from msgspec.structs import replace
from tests.contract.driver.grounds import Ground

from teraflock.dataset.model import DatasetManifest, DatasetMount, ManifestChunk, ManifestFile
from teraflock.dataset.rules import checked, tar_of
from teraflock.instance.driver import Capability
from teraflock.instance.engine_errors import EngineBusy, EngineRefused

FILES = {"a/one.txt": b"first\n", "a/two.bin": bytes(range(256)) * 40, "empty": b"", "run.sh": b"echo hi\n"}
_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def _able(ground: Ground) -> None:
    if not ground.can(Capability.DATASETS):
        pytest.skip("this engine has no datasets")


def tar() -> bytes:
    content = b"".join(FILES[name] for name in sorted(FILES))
    manifest = DatasetManifest(
        files=tuple(
            ManifestFile(name, len(FILES[name]), is_executable=name == "run.sh") for name in sorted(FILES)
        ),
        chunks=(ManifestChunk(sha256(content).hexdigest(), len(content)),),
    )
    return b"".join(tar_of(checked(manifest), [content[:7], content[7:]]))


def kept(ground: Ground) -> str:
    """A dataset on the host."""
    id, content = f"dat_{next(_numbers):016d}", tar()
    half = len(content) // 2
    ground.driver.receive_dataset(ground.host, id, 0, content[:half])
    ground.driver.receive_dataset(ground.host, id, half, content[half : half + 9])
    ground.driver.receive_dataset(ground.host, id, half, content[half:])  # repeated after a crash
    for _ in range(2):
        ground.driver.unpack_dataset(ground.host, id, sha256(content).hexdigest(), 1)
    return id


def test_guests_share_a_dataset_and_cannot_change_it(ground: Ground) -> None:
    id = kept(ground)
    assert [each.host for each in ground.driver.datasets() if each.dataset_id == id] == [ground.host]
    first = ground.up(data=(DatasetMount(id, "mnist"),))
    second = ground.up(data=(DatasetMount(id, "digits"),), project=2)
    assert ground.words(first, "cat", "/data/mnist/a/two.bin") == FILES["a/two.bin"]
    assert ground.words(second, "cat", "/data/digits/a/one.txt") == FILES["a/one.txt"]
    with pytest.raises(EngineBusy):
        ground.driver.delete_dataset(ground.host, id)
    if ground.around.real:
        for attack in (
            "touch /data/mnist/new",
            "chmod 777 /data/mnist/a/one.txt",
            "mount -o remount,rw /data/mnist && touch /data/mnist/new",
            "umount /data/mnist && touch /data/mnist/a/one.txt",
        ):
            ran = ground.driver.run(first.handle, ("sh", "-c", attack), stdin=b"", seconds_max=30)
            assert ran.exit_code != 0, attack
        sighting = ground.driver.look(first.handle)
        assert sighting is not None
        assert not sighting.altered
    for machine in (first, second):
        ground.driver.delete(machine.handle)
    for _ in range(2):
        ground.driver.delete_dataset(ground.host, id)
    assert id not in [each.dataset_id for each in ground.driver.datasets()]


def test_damaged_or_missing_copy_is_not_used(ground: Ground) -> None:
    id = f"dat_{next(_numbers):016d}"
    with pytest.raises(EngineRefused):
        ground.driver.receive_dataset(ground.host, id, 10, b"too early")
    ground.driver.receive_dataset(ground.host, id, 0, tar())
    with pytest.raises(EngineRefused):
        ground.driver.unpack_dataset(ground.host, id, "0" * 64, 1)
    assert id not in [each.dataset_id for each in ground.driver.datasets()]
    machine = ground.machine(data=(DatasetMount(id, "mnist"),))
    ground.driver.prepare(machine)
    with pytest.raises(EngineRefused):
        ground.driver.create(machine)
    ground.driver.create(replace(machine, data=()))
    ground.driver.delete_dataset(ground.host, id)
