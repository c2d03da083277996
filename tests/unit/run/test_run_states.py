"""The phases of runs: the table of moves, written a second time, and every pair tried."""

from datetime import UTC, datetime
from itertools import product

import pytest

from teraflock.run.model import Run, RunId, RunSpec
from teraflock.run.rules import moved
from teraflock.run.states import OVER, RUN_MOVES, RunPhase
from teraflock.tenant.model import MemberId, ProjectId

NOW = datetime(2026, 11, 16, tzinfo=UTC)
MOVES = {
    "queued": "starting cancelled failed",
    "starting": "setup copying ending",
    "setup": "caching copying ending",
    "caching": "copying ending",
    "copying": "running ending",
    "running": "stopping collecting starting ending",
    "stopping": "collecting ending",
    "collecting": "ending",
    "ending": "queued done failed cancelled",
    "done": "",
    "failed": "queued",
    "cancelled": "queued",
}


@pytest.mark.parametrize(("before", "after"), list(product(RunPhase, RunPhase)))
def test_only_listed_moves_are_possible(before: RunPhase, after: RunPhase) -> None:
    run = Run(
        id=RunId("run_1"), project_id=ProjectId("prj_1"), name="job", phase=before, spec=RunSpec(command=("true",)),
        created_at=NOW, created_by=MemberId("mem_1"), since=NOW, due_at=NOW,
    )  # fmt: skip
    if after in MOVES[before].split():
        assert moved(run, after, NOW).phase == after
    else:
        with pytest.raises(ValueError, match="cannot go"):
            moved(run, after, NOW)


def test_every_phase_leads_to_an_end() -> None:
    reached = set(OVER)
    for _ in RunPhase:
        reached |= {phase for phase, after in RUN_MOVES.items() if after & reached}
    assert reached == set(RunPhase)
