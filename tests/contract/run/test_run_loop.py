"""The loop of runs on both databases: a lost guest, a crash, a cached setup."""

from datetime import UTC, datetime
from pathlib import Path

from tests.faults.run_installation import RunInstallation
from tests.faults.test_runs import gone, result, steps

from teraflock.base.clock import FixedClock
from teraflock.drivers.simulated.faults import Killed
from teraflock.drivers.simulated.runs import chain
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.run.states import RunPhase
from teraflock.storage.database import Database


def test_run_survives_a_lost_guest_and_a_crash(database: Database, tmp_path: Path) -> None:
    installation = RunInstallation(
        database, MemoryWorld(), FixedClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC)), tmp_path
    )
    run = installation.until(
        installation.ask("train", "60", "1", "5", setup="echo ready"), lambda seen: steps(seen) > 30
    )
    installation.trouble.deleted_by_hand(run.instance_id)
    deaths: list[str] = []

    def die(at: str) -> None:
        if len(deaths) < 5 and at.endswith("unwritten"):
            deaths.append(at)
            raise Killed(at)

    installation.fault = die
    run = installation.finish(run)
    assert (run.phase, run.attempt, result(installation, run)) == (RunPhase.DONE, 2, chain(60).hex())
    assert installation.text(run).count("ready\n") == 1, "the second instance started from the cached setup"
    assert len(deaths) == 5
    assert gone(installation)
