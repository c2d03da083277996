"""The time of a step, from reports that also contain saving and interruptions."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.unit.run.test_run_guard import run_of

from teraflock.run.model import RunProgress
from teraflock.run.pace import PACES_MAX, with_pace
from teraflock.run.rules import step_seconds, usual_step_seconds

START = datetime(2026, 11, 16, tzinfo=UTC)


def reported(steps: int, *, save_every: int, save_seconds: float) -> RunProgress:
    """A report every ten steps of 0.1 s each."""
    now = START
    seen = RunProgress(step=0, first_step=0, first_at=now, at=now)
    for step in range(10, steps + 1, 10):
        now += timedelta(seconds=1 + (save_seconds if step % save_every == 0 else 0))
        seen = replace(seen, step=step, at=now, paces=with_pace(seen, step, now))
    return seen


def test_saving_counts_for_the_end_but_not_for_the_time_of_a_step() -> None:
    run = run_of(1, 9, progress=reported(300, save_every=50, save_seconds=5))
    assert usual_step_seconds(run) == pytest.approx(0.1)
    assert step_seconds(run) == pytest.approx(0.2)


def test_the_pause_before_a_restart_is_left_out() -> None:
    seen = reported(100, save_every=1000, save_seconds=0)
    paused = replace(seen, first_at=None)
    later = START + timedelta(hours=9)
    assert with_pace(paused, 110, later) == seen.paces
    assert with_pace(seen, 50, later) == seen.paces, "it went back to a checkpoint"


def test_paces_are_bounded() -> None:
    assert len(reported(10_000, save_every=50, save_seconds=1).paces) == PACES_MAX
