"""A run with a deadline on spot machines: spot while on-demand would still finish in time, on-demand from then on.

`reconcile/` asks `needs_steady` before every launch and while a run is on a spot machine. `GuardedSpot` is the same
rule for the simulator, so that `--dry-run` shows what the server will do. The guard itself is `safe` in `policy.py`.
"""

from collections.abc import Sequence
from datetime import datetime
from math import exp
from random import Random
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.run.checkpoint import checkpoint_every_seconds, expected_loss_hours
from teraflock.run.learn import learn
from teraflock.run.model import NextPlace, Run, RunPlace, RunState, RunTerms, Sight, sights_of
from teraflock.run.policy import SpotPolicy, safe
from teraflock.run.rules import step_seconds
from teraflock.run.simulate import aligned, replay
from teraflock.run.survival import PRIOR_DOWN, PRIOR_UP, ROUNDING_HOURS, age_class

TICK_HOURS: Final = 0.1
"""The longest time between two decisions, with a margin for a slow server."""
CHANGEOVER_HOURS: Final = 0.2
"""Launch, setup and restore on another machine, as long as nothing is measured."""
REPLAYS: Final = 120
ZONE_SPREAD: Final = 0.4
"""How much zones differ, as the standard deviation of the logarithm of how long they stay. 0.3 fits the first halves of
the public series of 2022; zones also change from week to week."""
WARM_UP_TICKS: Final = 960
"""A run starts somewhere within a period, and rather in a long one: four days come before it."""
SPOT, STEADY = 0, 1


class CostDistribution(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may cost on spot machines, in micros, over random availabilities."""

    p10: int
    p50: int
    p90: int
    steady: int
    """On-demand from start to end."""
    late_share: float
    simulations: int = REPLAYS


class GuardedSpot:
    """The rule of the server as a policy of the simulator. A run that is at the steady place stays there."""

    def __init__(self, terms: RunTerms, places: Sequence[RunPlace]) -> None:
        self._terms, self._places = terms, places

    def decide(self, state: RunState, sights: Sequence[Sight]) -> NextPlace:
        if state.left_hours <= ROUNDING_HOURS:
            return NextPlace(None, "the work is done")
        if state.held != STEADY:
            if sights[SPOT].up and safe(state, SPOT, self._terms, self._places):
                return NextPlace(SPOT, "spot is available and the deadline is safe")
            if not sights[SPOT].up and safe(state, None, self._terms, self._places):
                return NextPlace(None, "there is time to wait for spot")
        return NextPlace(STEADY, "anything else could miss the deadline")


def needs_steady(run: Run, now: datetime, changeover: float = CHANGEOVER_HOURS) -> bool:
    """Whether a run must be on a machine that nobody takes back. False for runs without deadline or estimate."""
    deadline, left = run.spec.deadline, work_left_hours(run)
    if deadline is None or left is None:
        return False
    terms, places = _terms(left, (deadline - now).total_seconds() / 3600), _places(1, 1, changeover)
    held = SPOT if run.running_since is not None else None
    state = RunState(left_hours=left, time_left_hours=terms.deadline_hours, held=held)
    return not safe(state, SPOT, terms, places)


def work_left_hours(run: Run) -> float | None:
    """The upper end of the work that is left, with what is lost since the last checkpoint. None: unknown."""
    seen, measured = run.progress, step_seconds(run)
    if seen is not None and seen.of and measured is not None:
        return max(0, seen.of - seen.step) * measured / 3600 + _unsaved_hours(run)
    if run.spec.estimate is None or run.spec.estimate.hours is None:
        return None
    share = min(1.0, seen.step / seen.of) if seen is not None and seen.of else 0.0
    return run.spec.estimate.hours[2] * (1 - share) + (_unsaved_hours(run) if share else 0.0)


def distribution(
    hours: tuple[float, float, float],
    deadline_hours: float,
    spot_micros: int,
    steady_micros: int,
    seed: int = 0,
) -> CostDistribution:
    """Replay the policy on random availabilities around the shipped rates. Without a price, only the guard."""
    if hours[2] + CHANGEOVER_HOURS > deadline_hours:
        raise BadInput(
            f"The deadline in {deadline_hours:.3g} h is too soon: the run may take {hours[2]:.3g} h",
            hint="Use a later deadline, or a faster GPU",
        )
    draw, places = Random(seed), _places(spot_micros, steady_micros)  # noqa: S311
    ticks = WARM_UP_TICKS + int(deadline_hours / TICK_HOURS) + 2
    steady = (Sight(True, 1e9),) * ticks
    known = learn([()], TICK_HOURS)
    terms = [_terms(max(each, TICK_HOURS), deadline_hours) for each in hours]
    rules = [
        SpotPolicy(each, places, known) if steady_micros else GuardedSpot(each, places) for each in terms
    ]
    costs, late = [], 0
    for number in range(REPLAYS):
        sights = aligned((sights_of(availability(ticks, draw), TICK_HOURS), steady))
        done = replay(terms[number % 3], places, sights, WARM_UP_TICKS, rules[number % 3])
        costs.append(done.cost_micros)
        late += done.late
    costs.sort()
    p10, p50, p90 = (round(costs[int(share * (REPLAYS - 1))]) for share in (0.1, 0.5, 0.9))
    whole = round((hours[1] + CHANGEOVER_HOURS) * steady_micros)
    return CostDistribution(p10=p10, p50=p50, p90=p90, steady=whole, late_share=late / REPLAYS)


def availability(ticks: int, draw: Random) -> list[bool]:
    """A random series of a random zone: periods end by their age, at the shipped rates times the pace of the zone."""
    series: list[bool] = []
    pace = exp(draw.gauss(0, ZONE_SPREAD))
    up, age = draw.random() < 0.5, TICK_HOURS
    for _ in range(ticks):
        series.append(up)
        rate = PRIOR_UP[age_class(age)] * pace if up else PRIOR_DOWN[age_class(age)] / pace
        ends = draw.random() < 1 - exp(-rate * TICK_HOURS)
        up, age = (not up, TICK_HOURS) if ends else (up, age + TICK_HOURS)
    return series


def _terms(work_hours: float, deadline_hours: float) -> RunTerms:
    return RunTerms(work_hours=work_hours, deadline_hours=deadline_hours, tick_hours=TICK_HOURS)


def _places(
    spot_micros: int, steady_micros: int, changeover: float = CHANGEOVER_HOURS
) -> tuple[RunPlace, RunPlace]:
    return (
        RunPlace(name="spot", mode="spot", price_micros_per_hour=spot_micros, changeover_hours=changeover),
        RunPlace(
            name="on-demand",
            mode="on-demand",
            price_micros_per_hour=steady_micros,
            changeover_hours=changeover,
        ),
    )


def _unsaved_hours(run: Run) -> float:
    every = run.save_every_seconds or checkpoint_every_seconds(expected_loss_hours(run.spec.mode))
    return every / 3600
