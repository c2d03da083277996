"""The guard: no run is late while a steady place can be had, whatever spot does."""

from collections.abc import Sequence
from functools import cache
from math import ceil
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.run.worlds import ON_DEMAND, TICK, cold_policy, on_demand, rows, spot, terms

from teraflock.base.errors import BadInput
from teraflock.run.model import NextPlace, RunPlace, RunState, RunTerms, Sight, sights_of
from teraflock.run.policy import SpotPolicy, safe
from teraflock.run.simulate import replay

WORK = 4.0


@cache
def built(
    slack: float, changeover: float, tick: float, zones: int, wait: float = 0.0
) -> tuple[RunTerms, tuple[RunPlace, ...], SpotPolicy]:
    places = (
        *(spot(str(zone), changeover=changeover) for zone in range(zones)),
        on_demand(changeover=changeover),
    )
    job = terms(WORK, WORK + changeover + wait + slack, tick, wait)
    return job, places, cold_policy(job, places)


worlds = st.tuples(
    st.sampled_from([0.0, 0.05, 0.4, 1.0, 3.3]),
    st.sampled_from([0.0, 0.02, 0.2, 0.5]),
    st.sampled_from([TICK, 195 / 3600, 0.25]),
    st.integers(1, 3),
)


def periods(ticks: int) -> st.SearchStrategy[list[bool]]:
    """Availability in periods, so that changeovers are begun and lost."""
    lengths = st.lists(st.integers(1, 12), min_size=ticks, max_size=ticks)
    return st.tuples(st.booleans(), lengths).map(
        lambda drawn: [drawn[0] ^ (place % 2 == 1) for place, n in enumerate(drawn[1]) for _ in range(n)][
            :ticks
        ]
    )


@settings(max_examples=300, deadline=None)
@given(world=worlds, data=st.data())
def test_no_run_is_late_on_any_availability(
    world: tuple[float, float, float, int], data: st.DataObject
) -> None:
    job, places, policy = built(*world)
    ticks = ceil(job.deadline_hours / job.tick_hours)
    series = [data.draw(periods(ticks)) for _ in places[:-1]]
    done = replay(job, places, rows(*series, tick=job.tick_hours), 0, policy)
    assert not done.late
    changeovers = done.starts * places[-1].changeover_hours
    assert done.cost_micros <= ON_DEMAND * (job.work_hours + changeovers + job.tick_hours) + 1


@settings(max_examples=100, deadline=None)
@given(world=worlds, spare=st.floats(0, 2), ticks_up=st.integers(0, 4))
def test_spot_that_dies_at_the_last_safe_tick_makes_no_run_late(
    world: tuple[float, float, float, int], spare: float, ticks_up: int
) -> None:
    job, places, policy = built(*world)
    enemy = Enemy(policy, job, spare, ticks_up, len(places) - 1)
    assert not replay(job, places, enemy, 0, enemy).late


@settings(max_examples=200, deadline=None)
@given(world=worlds, seed=st.integers(0, 10**6))
def test_no_run_is_late_that_takes_any_safe_action(world: tuple[float, float, float, int], seed: int) -> None:
    """Whatever the costs are: the guard alone keeps the deadline, also if it is in the middle of a tick."""
    job, places, _ = built(*world)
    draw = Random(seed)
    ticks = ceil(job.deadline_hours / job.tick_hours)
    series = [[draw.random() < 0.7 for _ in range(ticks)] for _ in places[:-1]]
    seen = rows(*series, tick=job.tick_hours)
    assert not replay(job, places, seen, 0, Gambler(job, places, draw)).late


class Gambler:
    """Takes a random safe action, and on-demand if there is none."""

    def __init__(self, job: RunTerms, places: Sequence[RunPlace], draw: Random) -> None:
        self._job, self._places, self._draw = job, places, draw

    def decide(self, state: RunState, sights: Sequence[Sight]) -> NextPlace:
        there = [None, *(place for place, sight in enumerate(sights) if sight.up)]
        allowed = [each for each in there if safe(state, each, self._job, self._places)]
        return NextPlace(self._draw.choice(allowed or [len(self._places) - 1]), "drawn")


class Enemy(Sequence[Sequence[Sight]]):
    """Takes spot away as soon as slack is nearly used up, and gives it back to lure the run away from on-demand."""

    def __init__(self, policy: SpotPolicy, job: RunTerms, spare: float, ticks_up: int, zones: int) -> None:
        self._policy, self._job, self._spare, self._ticks_up, self._zones = (
            policy,
            job,
            spare,
            ticks_up,
            zones,
        )
        self._series: list[bool] = []
        self._slack, self._held = job.deadline_hours, 0

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, tick):  # type: ignore[no-untyped-def]
        tight = self._slack < self._spare
        self._series.append(not (tight and self._held > self._ticks_up))
        seen = sights_of(self._series, self._job.tick_hours)[-1]
        return (*[seen] * self._zones, Sight(True, 1.0))

    def decide(self, state: RunState, sights: Sequence[Sight]) -> NextPlace:
        chosen = self._policy.decide(state, sights)
        self._slack = state.time_left_hours - state.left_hours
        on_spot = chosen.place is not None and chosen.place < self._zones
        self._held = self._held + 1 if on_spot else 0
        return chosen


@settings(max_examples=150, deadline=None)
@given(data=st.data(), slack=st.sampled_from([0.0, 0.4, 1.5]))
def test_no_run_is_late_when_on_demand_is_refused_for_as_long_as_assumed(
    data: st.DataObject, slack: float
) -> None:
    job, places, policy = built(slack, 0.2, TICK, 1, 0.5)
    ticks = ceil(job.deadline_hours / TICK)
    refused = st.tuples(st.integers(1, 9), st.integers(0, 3))  # at most 3 ticks, or 0.5 h, in a row
    offered = data.draw(st.lists(refused, min_size=ticks, max_size=ticks))
    there = [up for up_ticks, down in offered for up in [False] * down + [True] * up_ticks][:ticks]
    seen = list(zip(sights_of(data.draw(periods(ticks)), TICK), sights_of(there, TICK), strict=True))
    assert not replay(job, places, seen, 0, policy).late


@settings(max_examples=150, deadline=None)
@given(data=st.data(), slack=st.sampled_from([0.6, 1.5]), price=st.sampled_from([100_000, 2_000_000]))
def test_no_run_is_late_when_an_own_card_comes_and_goes(
    data: st.DataObject, slack: float, price: int
) -> None:
    """The own card starts slower than on-demand, or faster."""
    job, places, policy = with_own_card(slack, price, data.draw(st.sampled_from([0.05, 0.5])))
    ticks = ceil(job.deadline_hours / TICK)
    series = [data.draw(periods(ticks)) for _ in range(2)]
    assert not replay(job, places, rows(*series), 0, policy).late


@cache
def with_own_card(
    slack: float, price: int, changeover: float
) -> tuple[RunTerms, tuple[RunPlace, ...], SpotPolicy]:
    own = RunPlace(name="own", mode="own", price_micros_per_hour=price, changeover_hours=changeover)
    places = (spot(), own, on_demand())
    job = terms(WORK, WORK + 0.2 + slack)
    return job, places, cold_policy(job, places)


def test_without_the_reserve_a_refusal_makes_the_run_late() -> None:
    """Shows that the test above can fail."""
    job, places, policy = built(0.0, 0.2, TICK, 1)
    ticks = ceil(job.deadline_hours / TICK)
    seen = list(
        zip(sights_of([False] * ticks, TICK), sights_of([False] + [True] * ticks, TICK), strict=False)
    )
    assert replay(job, places, seen, 0, policy).late


def test_without_slack_the_run_is_on_demand_from_the_start() -> None:
    job, places, policy = built(0.0, 0.2, TICK, 1)
    done = replay(job, places, rows([True] * 40), 0, policy)
    assert (done.late, done.starts, done.spot_hours) == (False, 1, 0.0)


def test_a_deadline_that_cannot_be_met_is_refused() -> None:
    with pytest.raises(BadInput, match="on-demand alone needs 10.2 h"):
        cold_policy(terms(10, 10.1), [spot(), on_demand()])
    with pytest.raises(BadInput, match="on-demand alone needs 11.2 h"):
        cold_policy(terms(10, 11, wait=1), [spot(), on_demand()])


def test_a_run_that_can_no_longer_be_guaranteed_still_tries() -> None:
    """For example after the server was down for too long."""
    _, places, policy = built(0.4, 0.2, TICK, 1)
    on_spot = RunState(left_hours=1.0, time_left_hours=1.1, held=0, last=0)
    assert policy.decide(on_spot, (Sight(True, 1.0), Sight(True, 1.0))).place == 0, "only spot can be in time"
    nowhere = RunState(left_hours=1.0, time_left_hours=0.5)
    assert policy.decide(nowhere, (Sight(False, 1.0), Sight(True, 1.0))).place == 1
    assert places[1].steady
