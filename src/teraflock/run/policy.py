"""Decide where a run should be now: at the lowest expected cost, and never too late.

`SpotPolicy` compares the expected costs to finish of waiting, of the best steady place and of the best spot place. The
guard overrules it: an action is *safe* if a steady place, taken at the next decision, still finishes in time whatever
happens to spot meanwhile. While every action taken is safe, the deadline is kept as long as a steady place can be had
within `steady_wait_hours`. Everything here is pure.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Final

from teraflock.base.errors import BadInput
from teraflock.run.learn import Knowledge
from teraflock.run.model import NextPlace, RunPlace, RunState, RunTerms, Sight
from teraflock.run.survival import CLASSES, ROUNDING_HOURS, age_class

if TYPE_CHECKING:
    from teraflock.run.values import ExpectedCosts

PRICE_STEP: Final = 0.25  # spot prices that differ by less share their tables
SWITCH_GAIN_MIN: Final = 0.05  # a move must save this share of a steady changeover, or nothing moves

DONE: Final = NextPlace(None, "the work is done")


def safe(state: RunState, place: int | None, terms: RunTerms, places: Sequence[RunPlace]) -> bool:
    """Say whether a steady place at the next decision still meets the deadline after a tick at `place`.

    Work that ends within the tick must end before the deadline too, which may be in the middle of that tick. Spot may
    be lost a moment before the end, so it always needs the reserve.
    """
    whole = state.left_hours + _overhead(state, place, places)
    if place is not None and places[place].steady:
        return whole <= state.time_left_hours + ROUNDING_HOURS
    after = advanced(
        state, place, terms.tick_hours if place is None else min(terms.tick_hours, whole), places
    )
    # Of several steady places, it may be the slowest that is left.
    reserve = max(each.changeover_hours for each in places if each.steady) + terms.steady_wait_hours
    return after.left_hours + reserve <= after.time_left_hours + ROUNDING_HOURS


def advanced(state: RunState, place: int | None, hours: float, places: Sequence[RunPlace]) -> RunState:
    """Return the state after some hours at a place, without interruption. A new place starts with its changeover."""
    if place is None:
        return RunState(
            left_hours=state.left_hours, time_left_hours=state.time_left_hours - hours, last=state.last
        )
    overhead = _overhead(state, place, places)
    return RunState(
        left_hours=state.left_hours - max(0.0, hours - overhead),
        time_left_hours=state.time_left_hours - hours,
        held=place,
        overhead_hours=max(0.0, overhead - hours),
        last=place,
    )


def _overhead(state: RunState, place: int | None, places: Sequence[RunPlace]) -> float:
    """Return how long the run makes no progress at a place: the rest of its changeover, or a whole one."""
    if place is None:
        return 0.0
    return state.overhead_hours if place == state.held else places[place].changeover_hours


class SpotPolicy:
    """Decides for one run. Building it takes a tenth of a second; a decision takes microseconds."""

    def __init__(self, terms: RunTerms, places: Sequence[RunPlace], knowledge: Knowledge) -> None:
        check_terms(terms, places)
        self._terms, self._places = terms, tuple(places)
        self._steady = [position for position, place in enumerate(places) if place.steady]
        self._spot = [position for position, place in enumerate(places) if not place.steady]
        if len(knowledge.zones) != len(self._spot):
            raise ValueError("knowledge needs one entry for each spot place")
        self._survival = dict(zip(self._spot, knowledge.zones, strict=True))
        self._chances = knowledge.chances
        self._tables: dict[tuple[int, int], ExpectedCosts] = {}

    def decide(self, state: RunState, sights: Sequence[Sight]) -> NextPlace:
        """Decide for the time until the next decision. A held spot place must be available: else it is not held."""
        if state.left_hours <= ROUNDING_HOURS:
            return DONE
        steady = self._best_steady(state, sights)
        spot = self._best_spot(state, sights)
        if not self._steady:
            return NextPlace(spot, "no place is steady")
        actions = [*(each for each in (steady, spot) if each is not None), None]
        allowed = [each for each in actions if safe(state, each, self._terms, self._places)]
        if not allowed:
            return self._without_guarantee(state, steady, spot)
        if len(allowed) == 1:
            return NextPlace(allowed[0], "anything else could miss the deadline")
        tables = self._tables_for(spot, steady)
        costs = {each: self._cost(state, each, tables, self._situation(spot, sights)) for each in allowed}
        if self._takes_rather_than_waits(costs, spot, steady):
            del costs[None]
        return self._cheapest(state, costs, self._move_least(steady))

    def _cheapest(self, state: RunState, costs: Mapping[int | None, float], least: float) -> NextPlace:
        """Choose by cost. If it costs little more, the run stays where it is, or is somewhere rather than nowhere."""
        best = min(costs, key=lambda each: costs[each])
        if state.held is not None and state.held in costs and costs[state.held] - costs[best] < least:
            return NextPlace(state.held, "moving would save too little")
        if best is None:
            somewhere = min(costs, key=lambda each: (each is None, costs[each]))
            if costs[somewhere] - costs[best] < least:
                best = somewhere
        return NextPlace(best, "lowest expected cost")

    def _without_guarantee(self, state: RunState, steady: int | None, spot: int | None) -> NextPlace:
        """Choose when no action is safe: what can still finish in time, and progress in any case."""
        for place in (steady, spot):
            whole = state.left_hours + _overhead(state, place, self._places)
            if place is not None and whole <= state.time_left_hours + ROUNDING_HOURS:
                return NextPlace(place, "no place can guarantee the deadline")
        return NextPlace(
            steady if steady is not None else spot, "the deadline is missed, or no place is free"
        )

    def _cost(self, state: RunState, place: int | None, costs: "ExpectedCosts", situation: int) -> float:
        """Return the expected cost to finish when the run is at `place` now."""
        left = state.left_hours
        time = max(0.0, state.time_left_hours - self._terms.steady_wait_hours)
        if place is None:
            return costs.idle(situation, time, left)
        there = self._places[place]
        egress = 0 if state.last in (None, place) else there.egress_micros
        held = place == state.held
        if not there.steady:
            overhead = state.overhead_hours if held else there.changeover_hours
            return egress + costs.spot(situation - CLASSES, time, left, overhead)
        if held:
            return costs.keep_steady(situation, time, left, state.overhead_hours)
        return egress + costs.start_steady(situation, time, left)

    def _tables_for(self, spot: int | None, steady: int | None) -> "ExpectedCosts":
        """Return the tables for the best places of each kind. They are built when first needed."""
        cheapest_spot = self._cheapest_of(self._spot)
        steady = self._cheapest_of(self._steady) if steady is None else steady
        level = 0
        if spot is not None and (low := self._price(cheapest_spot)) > 0 and self._price(spot) > low:
            level = round(log(self._price(spot) / low) / log(1 + PRICE_STEP))
        key = (level, -1 if steady is None else steady)
        if key not in self._tables:
            from teraflock.run.values import (
                ExpectedCosts,
                RunPrices,
            )  # numpy takes 15 MB and a tenth of the start

            prices = RunPrices(
                spot=self._price(cheapest_spot) * (1 + PRICE_STEP) ** level,
                steady=self._price(steady),
                spot_changeover_hours=self._changeover(cheapest_spot),
                steady_changeover_hours=self._changeover(steady),
            )
            terms = self._terms
            time = terms.deadline_hours - terms.steady_wait_hours
            self._tables[key] = ExpectedCosts(self._chances, prices, terms.work_hours, time, terms.tick_hours)
        return self._tables[key]

    def _move_least(self, steady: int | None) -> float:
        """Return what a move must save at least."""
        return SWITCH_GAIN_MIN * self._price(steady) * self._changeover(steady)

    def _cheapest_of(self, places: Sequence[int]) -> int | None:
        return min(places, key=lambda each: self._price(each), default=None)

    def _price(self, place: int | None) -> float:
        return 0.0 if place is None else float(self._places[place].price_micros_per_hour)

    def _changeover(self, place: int | None) -> float:
        return 0.0 if place is None else self._places[place].changeover_hours

    def _situation(self, spot: int | None, sights: Sequence[Sight]) -> int:
        """Return the row of the tables: the age of the best spot place, or of the time without any."""
        if spot is not None:
            return CLASSES + age_class(sights[spot].age_hours)
        return age_class(min((sights[each].age_hours for each in self._spot), default=float("inf")))

    def _takes_rather_than_waits(
        self, costs: Mapping[int | None, float], spot: int | None, steady: int | None
    ) -> bool:
        """Whether a run takes one of several spot places now, not when it is older. The tables know the age of the best
        of them, but not which one it is: they would wait beside a good one that has just come back."""
        if None not in costs or spot not in costs or spot is None or len(self._spot) == 1:
            return False
        if steady is not None and costs[spot] > costs.get(steady, costs[spot]):
            return False
        return self._price(spot) <= (1 + SWITCH_GAIN_MIN) * self._price(self._cheapest_of(self._spot))

    def _best_steady(self, state: RunState, sights: Sequence[Sight]) -> int | None:
        there = [each for each in self._steady if sights[each].up or each == state.held]
        in_time = [each for each in there if safe(state, each, self._terms, self._places)]
        return self._preferred(state, in_time or there, dict.fromkeys(there, state.left_hours))

    def _best_spot(self, state: RunState, sights: Sequence[Sight]) -> int | None:
        found = [each for each in self._spot if sights[each].up]
        if len(found) <= 1:
            return found[0] if found else None
        return self._preferred(
            state, found, {each: self._residual(each, sights, state.left_hours) for each in found}
        )

    def _preferred(self, state: RunState, found: Sequence[int], stays: dict[int, float]) -> int | None:
        """Return the place with the lowest cost for each hour of its expected stay. Moving costs a changeover."""
        if not found:
            return None
        best = min(found, key=lambda each: self._hourly(state, each, stays[each]))
        held = state.held
        if held is None or held not in found or held == best:
            return best
        # The run can be at the new place instead of the old one only while both are there.
        both = min(stays[held], stays[best])
        dearer = self._places[held].price_micros_per_hour - self._places[best].price_micros_per_hour
        return best if dearer * both > (1 + SWITCH_GAIN_MIN) * self._move_cost(state, best) else held

    def _hourly(self, state: RunState, place: int, stay: float) -> float:
        return self._places[place].price_micros_per_hour + self._move_cost(state, place) / max(
            stay, ROUNDING_HOURS
        )

    def _move_cost(self, state: RunState, place: int) -> float:
        """Return what a start costs: egress, and the changeover, which uses up slack that would save steady hours."""
        there = self._places[place]
        hour = max([self._places[each].price_micros_per_hour for each in (place, *self._steady)])
        return there.changeover_hours * hour + (there.egress_micros if state.last not in (None, place) else 0)

    def _residual(self, place: int, sights: Sequence[Sight], left: float) -> float:
        return self._survival[place].residual_hours(sights[place].age_hours, left)


def check_terms(terms: RunTerms, places: Sequence[RunPlace]) -> None:
    """Refuse terms that mean nothing, or that even a steady place from the start could not meet."""
    numbers = (terms.work_hours, terms.deadline_hours, terms.tick_hours)
    if not all(0 < each < float("inf") for each in numbers) or not terms.steady_wait_hours >= 0:
        raise BadInput("Work, deadline and tick must be positive numbers of hours")
    if not places:
        raise BadInput("A run needs at least one place", hint="Allow spot, on-demand or your own hosts")
    if any(each.price_micros_per_hour < 0 or not each.changeover_hours >= 0 for each in places):
        raise BadInput("Prices and changeover times of places must not be negative")
    steady = [each.changeover_hours for each in places if each.steady]
    if (
        steady
        and terms.work_hours + min(steady) + terms.steady_wait_hours > terms.deadline_hours + ROUNDING_HOURS
    ):
        least = terms.work_hours + min(steady) + terms.steady_wait_hours
        raise BadInput(
            f"The deadline of {terms.deadline_hours:g} h is too soon: on-demand alone needs {least:g} h",
            hint="Use a later deadline, or a faster GPU",
        )
