"""The guard of runs on spot: never late while on-demand is there, and cheaper than on-demand when there is time."""

from datetime import UTC, datetime, timedelta
from random import Random
from statistics import mean, median

from hypothesis import given, settings
from hypothesis import strategies as st

from teraflock.run.guard import (
    CHANGEOVER_HOURS,
    TICK_HOURS,
    WARM_UP_TICKS,
    GuardedSpot,
    _places,
    _terms,
    availability,
    distribution,
    needs_steady,
    work_left_hours,
)
from teraflock.run.model import Run, RunEstimate, RunId, RunProgress, RunSpec, Sight, sights_of
from teraflock.run.simulate import aligned, replay
from teraflock.run.states import RunPhase
from teraflock.tenant.model import MemberId, ProjectId

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


@settings(max_examples=60)
@given(
    work=st.floats(0.2, 30), slack=st.floats(0.5, 20), series=st.lists(st.booleans(), min_size=5, max_size=60)
)
def test_guarded_run_is_never_late(work: float, slack: float, series: list[bool]) -> None:
    deadline = work + CHANGEOVER_HOURS + TICK_HOURS + slack
    terms, places = _terms(work, deadline), _places(1, 3)
    ticks = int(deadline / TICK_HOURS) + 2
    spot = sights_of((series * (ticks // len(series) + 1))[:ticks], TICK_HOURS)
    done = replay(terms, places, aligned((spot, (Sight(True, 1e9),) * ticks)), 0, GuardedSpot(terms, places))
    assert not done.late


def test_distribution_is_cheaper_than_on_demand_with_much_time() -> None:
    much = distribution((8.0, 10.0, 12.0), 60, 1_000_000, 3_000_000)
    little = distribution((8.0, 10.0, 12.0), 13, 1_000_000, 3_000_000)
    assert much.late_share == little.late_share == 0
    assert much.p10 <= much.p50 <= much.p90
    assert much.p50 < little.p50 < much.steady * 1.3
    assert much.p50 < 0.6 * much.steady


def test_zones_differ_and_the_cost_distribution_shows_it() -> None:
    """Of the public zones, some are up for a third of two weeks and some for nearly all of it."""
    draw = Random(3)
    shares = sorted(mean(availability(3400, draw)) for _ in range(40))
    assert shares[4] < 0.33
    assert shares[35] > 0.75
    spread = distribution((48.0, 48.0, 48.0), 72, 1_000_000, 3_145_000)
    assert spread.p10 < 0.36 * spread.steady, "nearly all on spot"
    assert spread.p90 > 0.9 * spread.steady, "nearly all on demand"


def test_runs_start_within_periods_that_are_older_than_a_tick() -> None:
    draw = Random(4)
    ages = [sights_of(availability(WARM_UP_TICKS + 1, draw), TICK_HOURS)[-1].age_hours for _ in range(60)]
    assert median(ages) > 2


def run_of(hours: float, deadline: float, progress: RunProgress | None = None) -> Run:
    spec = RunSpec(
        command=("train",),
        mode="spot",
        deadline=NOW + timedelta(hours=deadline),
        estimate=RunEstimate(hours=(hours, hours, hours)),
    )
    return Run(
        id=RunId("run_1"), project_id=ProjectId("prj_1"), name="job", phase=RunPhase.RUNNING, spec=spec, created_at=NOW,
        created_by=MemberId("mem_1"), since=NOW, due_at=NOW, progress=progress,
    )  # fmt: skip


def test_run_needs_on_demand_only_when_time_is_short() -> None:
    assert not needs_steady(run_of(10, 20), NOW)
    assert needs_steady(run_of(10, 10.2), NOW)
    half = RunProgress(step=50, of=100)
    assert not needs_steady(run_of(10, 10.2, half), NOW)
    slow = RunProgress(step=50, of=100, first_step=40, first_at=NOW - timedelta(hours=10), at=NOW)
    assert (work_left_hours(run_of(10, 20, slow)) or 0) > 49, "what is measured counts more than the estimate"
    assert needs_steady(run_of(10, 20, slow), NOW)
