"""Two servers share one database. One dies at every commit of every operation, just before it or just after.

The commits are counted while the walk runs, so new ones are covered without a change here: those of the loops for
hosts, drift, moves, drains, the queue and bids are among them. The other server, which was running all the time,
completes the operation alone.
"""

from datetime import UTC, datetime

import pytest
from tests.faults.checker import charged_on_lost_hosts, faults
from tests.faults.installation import Installation, Worker
from tests.faults.test_lost_host import SCENES, ask
from tests.long import sampled
from tests.simulation.crashing_database import CrashingDatabase

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.faults import Killed
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.model import Operation
from teraflock.instance.states import Phase
from teraflock.reconcile.loops import WORKER_TIME
from teraflock.storage.database import Database

COMMITS_MAX = 200
ROUNDS_MAX = 60
ROUND_SECONDS = 3.0
FIRST = Operation.RESIZE
OPERATIONS = [FIRST, *(each for each in Operation if each != FIRST)]
WALK = [
    (each, undone, side)
    for each in OPERATIONS
    for undone in (False, True)
    for side in ("before", "after")
    if SCENES[each][2] or not undone
]


class TwoServers:
    """`first` can die at a commit. `second` cannot."""

    def __init__(self, database: Database) -> None:
        self.installation = Installation(
            database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
        )
        self.crashing = CrashingDatabase(database, lambda tx: None, lambda seen: None)
        self.second = self.installation.hire()

    def first(self) -> Worker:
        """A new process in the place of the one that died."""
        safe, self.installation.database = self.installation.database, self.crashing
        try:
            return self.installation.hire()
        finally:
            self.installation.database = safe

    def dies(self, commit: int) -> bool:
        """Let both work until nothing is left to do, or until the first one died at its so-and-so-many-th commit."""
        worker = self.first()
        self.crashing.dies_in = commit
        try:
            for _ in range(ROUNDS_MAX):
                self.round(worker)
                if self.installation.idle():
                    return False
        except Killed:
            return True
        finally:
            self.crashing.live()
        raise AssertionError("the servers do not become idle")

    def round(self, worker: Worker) -> None:
        worker.beat()
        worker.look()
        worker.turn()
        self.second.beat()
        self.installation.wait(ROUND_SECONDS)

    def survive(self) -> None:
        """The second server works alone, also after the leases of the first one have ended."""
        for number in range(ROUNDS_MAX):
            self.round(self.second)
            if number * ROUND_SECONDS > WORKER_TIME.total_seconds() and self.installation.idle():
                return
        raise AssertionError("the second server does not become idle")

    def check(self) -> None:
        found = self.installation
        assert faults(found.database, found.world, found.clock.now()) == []
        assert charged_on_lost_hosts(found.database) == []
        for view in found.service.page(found.tenant.project.id, limit=9):
            assert str(view.instance.wanted) == view.instance.phase or view.instance.phase == Phase.FAILED

    def empty(self) -> None:
        found = self.installation
        for view in found.service.page(found.tenant.project.id, limit=9):
            ask(found, "delete", view.instance.id)
        for image in found.images.page(found.tenant.project.id, limit=9):
            if image.name == "mine":
                found.images.delete(found.tenant.actor, found.tenant.project, image.name)
        self.survive()
        assert list(found.engine.sightings()) == []


@pytest.mark.parametrize(
    ("operation", "is_undone", "dies"),
    sampled(WALK, every=len(WALK), because="every commit of every operation"),
)
def test_a_server_that_dies_at_any_commit_is_replaced_by_the_other(
    database: Database, operation: Operation, is_undone: bool, dies: str
) -> None:
    servers = TwoServers(database)
    servers.crashing.dies_after_commit = dies == "after"
    set_up, wish, turn_back = SCENES[operation]
    for commit in range(1, COMMITS_MAX):
        set_up(servers.installation)
        if is_undone and turn_back is not None:
            servers.installation.trouble.faults(turn_back)
        wish(servers.installation)
        died = servers.dies(commit)
        servers.installation.trouble.no_more_faults()
        servers.survive()
        servers.check()
        if not died:
            assert commit > 3, "the first server did nothing"
            return
        servers.empty()
    raise AssertionError("the operation does not end")
