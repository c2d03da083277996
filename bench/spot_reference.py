"""Known policies and the optimum, to compare with: Uniform Progress, the slack rule, and full knowledge.

Uniform Progress is from "Can't Be Late" (NSDI 2024). The slack rule waits for spot while slack is more than a fifth of
the work left. Both stay in a zone until it is lost, and then take the first available one, or the best one by a score.
They use the guard of our policy. The optimum knows the whole future.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import ceil, gcd

import numpy as np
import numpy.typing as npt

from teraflock.run.model import NextPlace, RunPlace, RunState, RunTerms, Sight
from teraflock.run.policy import safe

Floats = npt.NDArray[np.float64]
SLACK_SHARE = 0.2
WEEK_HOURS = 168.0

Score = Callable[[int, int], float]
"""How good a zone is at a tick of the run."""


def week_scores(up: Sequence[Sequence[bool]], tick_hours: float, start: int) -> dict[str, Score]:
    """How long zones were available in the week before, and how long their available periods were on average."""
    week = round(WEEK_HOURS / tick_hours)
    ups = [[0, *accumulate(map(int, zone))] for zone in up]
    begun = [
        [0, *accumulate(int(now and not before) for before, now in zip((False, *zone), zone, strict=False))]
        for zone in up
    ]

    def within(counts: Sequence[int], tick: int) -> int:
        return counts[start + tick] - counts[max(0, start + tick - week)]

    return {
        "last week": lambda zone, tick: within(ups[zone], tick),
        "mean period": lambda zone, tick: within(ups[zone], tick) / max(1, within(begun[zone], tick)),
    }


def _first(zone: int, _tick: int) -> float:
    return -zone


class _Rule:
    """Takes what `choose` prefers, or on-demand if that is not safe. The last place is on-demand."""

    def __init__(self, terms: RunTerms, places: Sequence[RunPlace], score: Score = _first) -> None:
        self.terms, self.places, self.on_demand, self._score = terms, places, len(places) - 1, score

    def decide(self, state: RunState, sights: Sequence[Sight]) -> NextPlace:
        spot = state.held if state.held not in (None, self.on_demand) else None
        if spot is None:
            tick = round((self.terms.deadline_hours - state.time_left_hours) / self.terms.tick_hours)
            found = (each for each in range(self.on_demand) if sights[each].up)
            spot = max(found, key=lambda each: self._score(each, tick), default=None)
        chosen = self.choose(state, spot)
        if safe(state, chosen, self.terms, self.places):
            return NextPlace(chosen, "rule")
        return NextPlace(self.on_demand, "guard")

    def choose(self, state: RunState, spot: int | None) -> int | None:
        raise NotImplementedError


class UniformProgress(_Rule):
    def choose(self, state: RunState, spot: int | None) -> int | None:
        terms = self.terms
        share = terms.work_hours / terms.deadline_hours
        elapsed = terms.deadline_hours - state.time_left_hours
        done = terms.work_hours - state.left_hours
        if state.held == self.on_demand:
            margin = 2 * self.places[self.on_demand].changeover_hours
            return spot if done > (elapsed + margin) * share else self.on_demand
        return spot if spot is not None or done >= elapsed * share - 1e-9 else self.on_demand


class SlackRule(_Rule):
    def choose(self, state: RunState, spot: int | None) -> int | None:
        slack = state.time_left_hours - state.left_hours
        return spot if spot is not None or slack > SLACK_SHARE * state.left_hours else self.on_demand


def optimum(terms: RunTerms, places: Sequence[RunPlace], up: Sequence[Sequence[bool]], start: int) -> float:
    """Return the lowest cost in micros with full knowledge of the future. Places have one changeover.

    With full knowledge no start is interrupted during its changeover. So a start loses its changeover of slack, waiting
    loses the time, and work loses none: the columns of the tables are the slack that is left. Times are rounded to
    seconds.
    """
    hours = (terms.tick_hours, places[0].changeover_hours, terms.work_hours, terms.deadline_hours)
    unit = gcd(*(round(3600 * each) for each in hours))
    tick, over, work, deadline = (round(3600 * each) // unit for each in hours)
    pay = np.array([place.price_micros_per_hour * terms.tick_hours for place in places])[:, None]
    idle, held = np.zeros(deadline - work + 1), np.zeros((len(places), deadline - work + 1))
    for step in reversed(range(ceil(terms.deadline_hours / terms.tick_hours - 1e-9))):
        left = max(0, deadline - step * tick)
        there = np.array([*(series[start + step] for series in up), True])
        keeps = pay + held
        idle = np.minimum(_after(idle, min(tick, left)), _after(keeps[there].min(axis=0), over))
        held = np.where(there[:, None], np.minimum(idle, keeps), idle)
        idle[left:] = 0.0  # with as much slack as time, the work is done
        held[:, left:] = 0.0
    return float(idle[-1])


def _after(costs: Floats, lost: int) -> Floats:
    """The costs after a loss of slack. Without that slack, the deadline is missed."""
    moved = np.full_like(costs, np.inf)
    moved[lost:] = costs[: max(0, len(costs) - lost)]
    return moved
