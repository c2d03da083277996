"""Replay a policy on recorded availability, with the rules of the public benchmarks.

Time passes in ticks. At each tick the policy sees which places can be had and chooses one, or none. Every start burns
the changeover of the place without progress. A spot place that is not available is lost, with the rest of its
changeover. A tick is paid in full. A steady place may be refused, but is never lost. A run is late if
work is left at the deadline.
"""

from collections.abc import Sequence
from math import ceil
from typing import Protocol

import msgspec

from teraflock.run.model import NextPlace, RunPlace, RunState, RunTerms, Sight
from teraflock.run.policy import advanced
from teraflock.run.survival import ROUNDING_HOURS


class Decides(Protocol):
    def decide(self, state: RunState, sights: Sequence[Sight]) -> NextPlace: ...


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulated run cost, and how it went."""

    cost_micros: float
    late: bool
    starts: int
    steady_hours: float
    spot_hours: float


def replay(
    terms: RunTerms,
    places: Sequence[RunPlace],
    sights: Sequence[Sequence[Sight]],
    start: int,
    policy: Decides,
) -> Replay:
    """Simulate one run that starts at a tick. `sights` has, for each tick, what is seen of every place."""
    state = RunState(left_hours=terms.work_hours, time_left_hours=terms.deadline_hours)
    tick = terms.tick_hours
    cost = steady = spot = 0.0
    starts = 0
    for step in range(ceil(terms.deadline_hours / tick - ROUNDING_HOURS)):
        now = sights[start + step]
        held = state.held
        if held is not None and not places[held].steady and not now[held].up:
            state = msgspec.structs.replace(state, held=None, overhead_hours=0.0)
        chosen = policy.decide(state, now).place
        if chosen is not None:
            place = places[chosen]
            if chosen != state.held:
                if not now[chosen].up:
                    raise ValueError(f"The policy chose {place.name}, which is not available")
                starts += 1
                cost += 0 if state.last in (None, chosen) else place.egress_micros
            cost += place.price_micros_per_hour * tick
            steady, spot = (steady + tick, spot) if place.steady else (steady, spot + tick)
        state = advanced(state, chosen, tick, places)
        if state.left_hours <= ROUNDING_HOURS:
            break
    # The last tick ends later than the work: what was done after the end does not count as late.
    late = state.left_hours - min(0.0, state.time_left_hours) > ROUNDING_HOURS
    return Replay(cost_micros=cost, late=late, starts=starts, steady_hours=steady, spot_hours=spot)


def aligned(columns: Sequence[Sequence[Sight]]) -> tuple[tuple[Sight, ...], ...]:
    """Turn one sequence for each place into one row for each tick, as long as all places have one."""
    return tuple(zip(*columns, strict=False))
