"""Volumes on every engine that has them: their files outlive instances."""

import itertools
from collections.abc import Iterator

import pytest
from tests.contract.driver.grounds import Ground

from teraflock.base.quantities import GIB
from teraflock.instance.copy.model import VolumeCopyDriver
from teraflock.instance.driver import Capability, Machine
from teraflock.instance.engine_errors import EngineBusy, EngineMissing, EngineRefused
from teraflock.instance.volume.model import VolumeMount, VolumeSeen

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def _able(ground: Ground) -> None:
    if not ground.can(Capability.VOLUMES):
        pytest.skip("this engine has no volumes")


def made(ground: Ground) -> VolumeMount:
    id = f"vol_{next(_numbers):016d}"
    for _ in range(2):
        ground.driver.create_volume(ground.host, id, GIB)
    return VolumeMount(id, f"/mnt/{id[-4:]}", "")


def seen(ground: Ground, id: str) -> VolumeSeen | None:
    return next((each for each in ground.driver.volumes() if each.volume_id == id), None)


def write(ground: Ground, machine: Machine, path: str, content: bytes) -> None:
    assert ground.words(machine, "tee", path, stdin=content) == content


def test_files_outlive_an_instance_and_snapshots_bring_them_back(ground: Ground) -> None:
    mount = made(ground)
    first = ground.up()
    for _ in range(2):
        ground.driver.attach_volume(ground.host, first.id, mount)
    write(ground, first, f"{mount.path}/kept", b"one\n")
    found = seen(ground, mount.id)
    assert found == VolumeSeen(volume_id=mount.id, host=ground.host, size_bytes=GIB, users=(first.id,))
    sighting = ground.driver.look(first.handle)
    assert sighting is not None
    assert not sighting.altered
    sizes = {ground.driver.snapshot_volume(ground.host, mount.id, "vsn_0000000000000001") for _ in range(2)}
    assert len(sizes) == 1
    with pytest.raises(EngineBusy):
        ground.driver.delete_volume(ground.host, mount.id)
    ground.driver.delete(first.handle)
    ground.driver.create_volume(ground.host, mount.id, 2 * GIB)
    second = ground.up(volumes=(mount,), project=2)
    assert ground.words(second, "cat", f"{mount.path}/kept") == b"one\n", "another guest, with other user ids"
    write(ground, second, f"{mount.path}/kept", b"two\n")
    for _ in range(2):
        ground.driver.detach_volume(ground.host, second.id, mount.id)
    gone = ground.driver.run(second.handle, ("cat", f"{mount.path}/kept"), stdin=b"", seconds_max=30)
    assert gone.exit_code != 0
    ground.driver.restore_volume(ground.host, mount.id, "vsn_0000000000000001")
    ground.driver.attach_volume(ground.host, second.id, mount)
    assert ground.words(second, "cat", f"{mount.path}/kept") == b"one\n"
    found = seen(ground, mount.id)
    assert found is not None
    assert found.size_bytes == 2 * GIB, "a restore does not change the size"
    ground.driver.detach_volume(ground.host, second.id, mount.id)
    for _ in range(2):
        ground.driver.delete_volume_snapshot(ground.host, mount.id, "vsn_0000000000000001")
    for _ in range(2):
        ground.driver.delete_volume(ground.host, mount.id)
    assert seen(ground, mount.id) is None


def test_copy_has_the_files_and_nothing_else_is_left(ground: Ground) -> None:
    driver = ground.driver
    assert isinstance(driver, VolumeCopyDriver)
    mount = made(ground)
    copy = VolumeMount(f"vcp_{next(_numbers):016d}", "/mnt/copy", "")
    first = ground.up()
    driver.attach_volume(ground.host, first.id, mount)
    write(ground, first, f"{mount.path}/kept", b"one\n")
    with driver.pack_volume(ground.host, mount.id, copy.id) as packed:
        pieces = list(packed.content or ())
        write(ground, first, f"{mount.path}/kept", b"two\n")
    assert packed.size_bytes == len(b"one\n")
    assert seen(ground, copy.id) is None, "the source keeps nothing"
    driver.keep_volume(ground.host, copy.id, 2 * GIB, iter(pieces))
    found = seen(ground, copy.id)
    assert found == VolumeSeen(volume_id=copy.id, host=ground.host, size_bytes=2 * GIB)
    found = seen(ground, mount.id)
    assert found is not None
    assert found.users == (first.id,), "the volume itself stays as it is"
    second = ground.up(volumes=(copy,), project=2)
    assert ground.words(second, "cat", "/mnt/copy/kept") == b"one\n", "another guest, with other user ids"
    write(ground, second, "/mnt/copy/kept", b"three\n")
    assert ground.words(first, "cat", f"{mount.path}/kept") == b"two\n"
    driver.detach_volume(ground.host, second.id, copy.id)
    driver.detach_volume(ground.host, first.id, mount.id)
    for id in (copy.id, copy.id, mount.id):
        driver.delete_volume(ground.host, id)
    assert (seen(ground, copy.id), seen(ground, mount.id)) == (None, None)


def test_copy_that_breaks_off_leaves_nothing(ground: Ground) -> None:
    driver = ground.driver
    assert isinstance(driver, VolumeCopyDriver)
    mount = made(ground)
    copy_id = f"vcp_{next(_numbers):016d}"

    def broken() -> Iterator[bytes]:
        yield b"not a packed"
        raise EngineRefused("The source is gone")

    with pytest.raises((EngineRefused, EngineBusy)), driver.pack_volume(ground.host, mount.id, copy_id):
        driver.keep_volume(ground.host, copy_id, GIB, broken())
    driver.delete_volume(ground.host, copy_id)
    assert seen(ground, copy_id) is None
    with driver.pack_volume(ground.host, mount.id, copy_id):  # another process removes what a dead one left
        driver.delete_volume(ground.host, copy_id)
        assert seen(ground, copy_id) is None
    with pytest.raises(EngineMissing), driver.pack_volume(ground.host, "vol_none", copy_id):
        pytest.fail("it does not exist")
    driver.delete_volume(ground.host, mount.id)


def test_volume_with_holes_that_would_fill_the_pool_is_not_packed(ground: Ground) -> None:
    driver = ground.driver
    if not ground.around.real:
        pytest.skip("a simulated file has no holes")
    assert isinstance(driver, VolumeCopyDriver)
    mount = made(ground)
    copy_id = f"vcp_{next(_numbers):016d}"
    machine = ground.up(volumes=(mount,))
    hole = ("truncate", "-s", "100G", f"{mount.path}/hole")
    assert driver.run(machine.handle, hole, stdin=b"", seconds_max=30).exit_code == 0
    with pytest.raises(EngineRefused, match="holes"), driver.pack_volume(ground.host, mount.id, copy_id):
        pytest.fail("the engine would fill the hole")
    assert seen(ground, copy_id) is None
    driver.delete(machine.handle)
    driver.delete_volume(ground.host, mount.id)


def test_volume_has_its_size_and_one_instance(ground: Ground) -> None:
    if not ground.around.real:
        pytest.skip("a simulated disk is never full")
    mount = made(ground)
    machine = ground.up(volumes=(mount,))
    big = ("sh", "-c", f"head -c 1400M /dev/urandom > {mount.path}/big")
    ran = ground.driver.run(machine.handle, big, stdin=b"", seconds_max=60)
    assert ran.exit_code != 0, "more than the volume has"
    ground.driver.delete(machine.handle)
    ground.driver.delete_volume(ground.host, mount.id)
