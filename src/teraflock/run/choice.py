"""Where a run with a deadline should be: on spot, on demand, or nowhere for now. Pure.

The expected-cost policy of `policy.py` decides, with the guard that keeps the deadline. Its tables are built once for a
run and a day, and kept. Without a deadline, an estimate or prices, a run that asked for spot takes spot.
"""

from datetime import datetime
from functools import lru_cache
from math import ceil
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.run.guard import CHANGEOVER_HOURS, SPOT, STEADY, TICK_HOURS, needs_steady, work_left_hours
from teraflock.run.learn import Knowledge
from teraflock.run.model import NextPlace, Run, RunPlace, RunState, RunTerms, Sight
from teraflock.run.policy import SpotPolicy

ALWAYS: Final = Sight(True, 1e9)
POLICIES_KEPT: Final = 64
WORK_STEP_HOURS: Final = 2.0
"""Tables are built for the work rounded up to this. So a run needs new ones only every two hours."""


class RunPricing(msgspec.Struct, frozen=True, kw_only=True):
    """What the instance of a run costs per hour."""

    spot_micros: int
    steady_micros: int


def choose(
    run: Run,
    now: datetime,
    spot: Sight,
    held: int | None,
    pricing: RunPricing | None,
    known: Knowledge,
    changeover: float = CHANGEOVER_HOURS,
) -> NextPlace:
    """Decide for the time until the next decision. `held` is `SPOT`, `STEADY` or None. `changeover` is in hours."""
    deadline, left = run.spec.deadline, work_left_hours(run)
    if deadline is None or left is None:
        return NextPlace(SPOT if spot.up else None, "it asked for spot")
    # Quick starts that were measured do not shrink the reserve: it also has to cover a server or a host that fails.
    if needs_steady(run, now, max(changeover, CHANGEOVER_HOURS)):
        return NextPlace(STEADY, "anything else could miss the deadline")
    if pricing is None or not pricing.steady_micros:
        return _guarded(spot, held)
    whole = (deadline - run.created_at).total_seconds() / 3600
    try:
        policy = _policy(_rounded(left), whole, pricing, known, changeover)
    except BadInput:  # the estimate has grown beyond what the deadline allows
        return NextPlace(STEADY, "the deadline is close")
    time_left = (deadline - now).total_seconds() / 3600
    state = RunState(left_hours=left, time_left_hours=time_left, held=held, last=held)
    found = policy.decide(state, (spot, ALWAYS))
    moves = held == STEADY and found.place == SPOT
    if moves and pricing.steady_micros * left <= pricing.spot_micros * (left + changeover):
        return NextPlace(STEADY, "the rest costs less where it is")  # finer than the steps of the tables
    return found


def _guarded(spot: Sight, held: int | None) -> NextPlace:
    """Without prices: spot while the deadline is safe, and a run on demand stays there."""
    if held == STEADY:
        return NextPlace(STEADY, "it stays where it is")
    return NextPlace(SPOT if spot.up else None, "there is time for spot")


def _rounded(hours: float) -> float:
    return ceil(hours / WORK_STEP_HOURS) * WORK_STEP_HOURS


@lru_cache(maxsize=POLICIES_KEPT)
def _policy(
    work_hours: float, deadline_hours: float, pricing: RunPricing, known: Knowledge, changeover: float
) -> SpotPolicy:
    places = (
        _place("spot", pricing.spot_micros, changeover),
        _place("on-demand", pricing.steady_micros, changeover),
    )
    least = work_hours + changeover
    terms = RunTerms(
        work_hours=work_hours, deadline_hours=max(deadline_hours, least + TICK_HOURS), tick_hours=TICK_HOURS
    )
    return SpotPolicy(terms, places, known)


def _place(mode: str, micros: int, changeover: float) -> RunPlace:
    return RunPlace(
        name=mode,
        mode="spot" if mode == "spot" else "on-demand",
        price_micros_per_hour=micros,
        changeover_hours=changeover,
    )
