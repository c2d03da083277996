"""Copies of volumes when processes are killed at any point: nothing is lost, left over or attached twice."""

import contextlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace
from tests.faults.data_installation import DataInstallation
from tests.faults.run_installation import BEGAN
from tests.faults.test_volumes import VolumeDesk
from tests.long import sampled

from teraflock.base.quantities import GIB
from teraflock.drivers.simulated.faults import Killed, Kind, SimulatedFault, When
from teraflock.instance.copy.states import CopyState
from teraflock.instance.model import Instance, RestartPolicy
from teraflock.instance.orders import Order
from teraflock.instance.states import Phase
from teraflock.instance.volume import store
from teraflock.instance.volume.model import VolumeCopy
from teraflock.reconcile.copying import CopyLoop
from teraflock.reconcile.moving import MOVE_AFTER, MoveLoop
from teraflock.reconcile.volume_copies import VolumeCopyLoop
from teraflock.storage.database import Database, Transaction

T = TypeVar("T")
EVERY = timedelta(hours=1)
WRITES = 9
"""More than a turn of the loop needs."""


class DyingDatabase:
    """A process that ends before or after one of its transactions."""

    def __init__(self, database: Database, write: int, *, after: bool) -> None:
        self._database, self._left, self._after = database, write, after

    def write(self, work: Callable[[Transaction], T]) -> T:
        return self._counted(lambda: self._database.write(work))

    def write_with_locks(self, work: Callable[[Transaction], T]) -> T:
        return self._counted(lambda: self._database.write_with_locks(work))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def _counted(self, write: Callable[[], T]) -> T:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise Killed("before a transaction")
        done = write()
        if self._left == 0:
            raise Killed("after a transaction")
        return done


class CopyDesk(VolumeDesk):
    def copying(self, every: timedelta = EVERY, database: Any = None) -> None:
        """One turn of the loop, in a process of its own."""
        around = self.installation.workers[0].around
        try:
            VolumeCopyLoop(replace(around, database=database or self.installation.database), every).turn()
        except Killed:
            self.installation.wait(1)

    def copies(self) -> tuple[VolumeCopy, ...]:
        with self.installation.database.read() as tx:
            return store.copies_in_all_projects(tx)

    def started(self) -> Instance:
        self.volumes.create(self.actor, self.project, "disk", GIB, copied=True)
        first = self.launch("first", "disk:/mnt/disk")
        assert first.phase == Phase.RUNNING, first.problem
        self.words("first", "tee", "/mnt/disk/kept", stdin=b"one")
        return first

    def disks(self) -> set[str]:
        return {each.volume.disk_id for each in self.volumes.all(self.project)}

    def host(self, name: str) -> str:
        return self.installation.service.view(self.project.id, name).host_name or ""

    def finish(self) -> None:
        """Several turns of all loops, with enough time for what a dead process left."""
        for _ in range(4):
            self.installation.wait(61)
            self.settle()
            self.copying()

    def check(self) -> None:
        """Rows and engines agree, and the bill has what is kept."""
        copies = self.copies()
        assert {each.state for each in copies} <= {CopyState.READY}
        volumes = self.volumes.all(self.project)
        assert sorted(each.key for each in self.on_engine()) == sorted(
            [*(each.volume.disk_id for each in volumes), *(each.id for each in copies)]
        )
        for each in volumes:
            kept = sum(one.size_bytes for one in copies if one.volume_id == each.volume.id)
            assert each.volume.snapshots_bytes == kept


@pytest.fixture
def desk(tmp_path: Path) -> CopyDesk:
    return CopyDesk(DataInstallation.in_memory(BEGAN, tmp_path))


CALLS = ("volumes", "pack_volume", "keep_volume", "delete_volume", "detach_volume")
FAULTS = [
    SimulatedFault(call=call, when=when, kind=kind)
    for call in CALLS
    for when in When
    for kind in (Kind.KILLED, Kind.FAILED, Kind.ENGINE_DOWN)
]


def life(desk: CopyDesk, befall: Callable[[], Any]) -> None:
    """A volume is copied twice, loses its host, is recovered, written, copied again and deleted. `befall` may give a
    database that dies, for each turn in which copies are made or removed."""
    desk.started()
    lost = desk.host("first")
    desk.copying(database=befall())
    desk.finish()
    desk.words("first", "tee", "/mnt/disk/kept", stdin=b"two")
    desk.installation.wait(EVERY.total_seconds())
    desk.settle()
    desk.copying(database=befall())
    desk.finish()
    desk.words("first", "tee", "/mnt/disk/kept", stdin=b"lost")
    (copy,) = desk.copies()
    desk.check()
    desk.installation.trouble.host_goes_away(lost)
    desk.settle()
    desk.volumes.recover(desk.actor, desk.project, "disk")
    second = desk.launch("second", "disk:/mnt/again")
    assert second.phase == Phase.RUNNING, second.problem
    assert desk.words("second", "cat", "/mnt/again/kept") == b"two"
    desk.copying(database=befall())
    desk.installation.trouble.host_comes_back(lost, rebooted=False)
    desk.settle()
    assert desk.installation.service.view(desk.project.id, "first").instance.phase == Phase.RUNNING
    desk.copying(database=befall())
    desk.finish()
    desk.check()
    assert copy.id not in [each.id for each in desk.copies()], "it is the volume now"
    assert desk.words("second", "cat", "/mnt/again/kept") == b"two"
    assert desk.words("first", "cat", "/mnt/disk/kept") == b"", "the old disk is taken away from its instance"
    desk.installation.service.delete(desk.actor, desk.project, "second")
    desk.settle()
    desk.volumes.delete(desk.actor, desk.project, "disk")
    desk.settle()
    desk.copying(database=befall())
    desk.finish()
    desk.check()
    assert (desk.copies(), desk.on_engine()) == ((), [])


@pytest.mark.parametrize("fault", sampled(FAULTS, every=4, because="every fault at every point"))
def test_calls_that_fail(desk: CopyDesk, fault: SimulatedFault) -> None:
    life(desk, lambda: desk.installation.trouble.faults(fault))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("write", sampled(range(1, WRITES), every=4, because="each transaction of a turn"))
def test_processes_that_end(desk: CopyDesk, write: int, after: bool) -> None:
    life(desk, lambda: DyingDatabase(desk.installation.database, write, after=after))


def moving_desk(desk: CopyDesk, *, copied: bool = True) -> str:
    """An instance that may run elsewhere, with a volume and copies of both. Return its host."""
    desk.volumes.create(desk.actor, desk.project, "disk", GIB, copied=copied)
    desk.volumes.create(desk.actor, desk.project, "more", GIB, copied=True)
    order = Order(
        name="first", volumes=("disk:/mnt/disk", "more:/mnt/more"), restart_policy=RestartPolicy.ELSEWHERE
    )
    desk.installation.service.launch(desk.actor, desk.project, order)
    desk.settle()
    desk.words("first", "tee", "/mnt/disk/kept", stdin=b"one")
    desk.words("first", "tee", "/mnt/more/kept", stdin=b"two")
    for _ in range(3):
        CopyLoop(desk.installation.workers[0].around, EVERY).turn()
        desk.copying()
    desk.words("first", "tee", "/mnt/disk/kept", stdin=b"lost")
    return desk.host("first")


@pytest.mark.parametrize(
    ("write", "after"),
    sampled(
        [(0, False), *((write, after) for write in (1, 2) for after in (False, True))],
        every=2,
        because="each transaction of a turn",
    ),
)
def test_volumes_follow_an_instance_that_runs_elsewhere(desk: CopyDesk, write: int, after: bool) -> None:
    lost = moving_desk(desk)
    assert len({each.host_id for each in desk.copies()}) == 1, "copies of one instance are together"
    desk.installation.trouble.host_goes_away(lost)
    desk.settle()
    assert desk.host("first") == lost, "it may come back"
    desk.installation.wait(MOVE_AFTER.total_seconds())
    if write:
        around = desk.installation.workers[0].around
        dying: Any = DyingDatabase(desk.installation.database, write, after=after)
        with contextlib.suppress(Killed):
            MoveLoop(replace(around, database=dying)).turn()
    desk.settle()
    found = desk.installation.service.view(desk.project.id, "first")
    assert found.instance.phase == Phase.RUNNING, found.instance.problem
    assert found.host_name != lost
    assert "Its volumes are as they were at 2026-11-16 09:00 UTC" in found.instance.notice
    assert desk.words("first", "cat", "/mnt/disk/kept") == b"one"
    assert desk.words("first", "cat", "/mnt/more/kept") == b"two"
    desk.installation.trouble.host_comes_back(lost, rebooted=False)
    desk.finish()
    desk.check()
    assert {each.host for each in desk.on_engine() if each.key in desk.disks()} == {found.host_name}
    assert desk.words("first", "cat", "/mnt/disk/kept") == b"one"


def test_an_instance_waits_for_its_host_if_a_volume_has_no_copy(desk: CopyDesk) -> None:
    lost = moving_desk(desk, copied=False)
    desk.installation.trouble.host_goes_away(lost)
    desk.installation.wait(10 * MOVE_AFTER.total_seconds())
    desk.settle()
    assert desk.host("first") == lost
    desk.installation.trouble.host_comes_back(lost, rebooted=False)
    desk.settle()
    assert desk.words("first", "cat", "/mnt/disk/kept") == b"lost", "nothing is lost"
