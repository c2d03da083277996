"""Expected costs against a plain recursion over every future, where the chances are known exactly."""

from functools import cache
from itertools import pairwise
from math import exp

import pytest
from tests.unit.run.worlds import ALWAYS, TICK, memoryless, on_demand, spot, terms

from teraflock.run.model import RunState, Sight
from teraflock.run.policy import SWITCH_GAIN_MIN, SpotPolicy
from teraflock.run.survival import CLASSES, age_class
from teraflock.run.values import ExpectedCosts, RunPrices

K = 3.0
INFINITE = float("inf")


class Oracle:
    """The lowest expected cost with a changeover of one tick. RunPrices are per tick; spot costs 1."""

    def __init__(self, end_up: float, end_down: float) -> None:
        self.stays_up, self.stays_down = exp(-end_up * TICK), exp(-end_down * TICK)
        self.value = cache(self._value)

    def _value(self, time: int, left: int, held: str, up: bool) -> float:
        if left == 0:
            return 0.0
        return min(self.actions(time, left, held, up).values(), default=INFINITE)

    def actions(self, time: int, left: int, held: str, up: bool) -> dict[str, float]:
        """The cost of each action after which on-demand still finishes in time."""
        found = {}
        for action, price in (("idle", 0.0), ("steady", K), ("spot", 1.0)):
            if action == "spot" and not up:
                continue
            after = left - (action != "idle" and action == held)
            reserve = 0 if action == "steady" or after == 0 else 1
            if after + reserve <= time - 1:
                found[action] = price + self._next(time - 1, after, action, up)
        return found

    def _next(self, time: int, left: int, held: str, up: bool) -> float:
        chance = self.stays_up if up else 1 - self.stays_down
        lost = "idle" if held == "spot" else held
        return (chance * self.value(time, left, held, True) if chance else 0.0) + (1 - chance) * self.value(
            time, left, lost, False
        )


CASES = [(0.5, 2.0), (3.0, 3.0), (0.1, 0.1), (1.0, 8.0)]


@pytest.mark.parametrize(("end_up", "end_down"), CASES)
def test_costs_equal_the_oracle(end_up: float, end_down: float) -> None:
    oracle = Oracle(end_up, end_down)
    prices = RunPrices(
        spot=1 / TICK, steady=K / TICK, spot_changeover_hours=TICK, steady_changeover_hours=TICK
    )
    costs = ExpectedCosts(memoryless(end_up, end_down).chances, prices, 12 * TICK, 20 * TICK, TICK, 1e5)
    for time in range(2, 21):
        for left in range(1, min(12, time - 1) + 1):
            for up in (False, True):
                state = CLASSES * up
                found = [
                    costs.idle(state, time * TICK, left * TICK),
                    costs.start_steady(state, time * TICK, left * TICK),
                ]
                found += [costs.spot(0, time * TICK, left * TICK, TICK)] if up else []
                assert min(found) == pytest.approx(oracle.value(time, left, "idle", up), rel=1e-4)
        kept = costs.keep_steady(0, time * TICK, TICK * (time - 1), 0.0)
        if time - 1 <= 12:
            expected = oracle.actions(time, time - 1, "steady", False)["steady"]
            assert kept == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("end_up", "end_down"), CASES)
def test_decisions_cost_no_more_than_those_of_the_oracle(end_up: float, end_down: float) -> None:
    oracle = Oracle(end_up, end_down)
    places = [spot(price=6_000_000, changeover=TICK), on_demand(price=18_000_000, changeover=TICK)]
    policy = SpotPolicy(terms(12 * TICK, 20 * TICK), places, memoryless(end_up, end_down))
    checked = 0
    for time in range(2, 21):
        for left in range(1, min(12, time - 1) + 1):
            for held, up in (
                ("idle", False),
                ("idle", True),
                ("spot", True),
                ("steady", False),
                ("steady", True),
            ):
                allowed = oracle.actions(time, left, held, up)
                at = {"idle": None, "spot": 0, "steady": 1}
                state = RunState(
                    left_hours=left * TICK, time_left_hours=time * TICK, held=at[held], last=at[held]
                )
                chosen = policy.decide(state, (Sight(up, TICK), ALWAYS)).place
                cost = allowed[next(name for name, place in at.items() if place == chosen)]
                assert cost <= 1.02 * min(allowed.values()) + SWITCH_GAIN_MIN * K
                checked += 1
    assert checked > 500


def test_costs_between_grid_points_lie_between_those_of_the_grid() -> None:
    prices = RunPrices(spot=1.0, steady=3.0, spot_changeover_hours=0.2, steady_changeover_hours=0.2)
    costs = ExpectedCosts(memoryless(1.0, 2.0).chances, prices, 6.0, 9.0, 195 / 3600)
    for left in (1.0, 2.5, 5.9):
        waits = [costs.idle(age_class(1.0), left + 0.5 + extra / 50, left) for extra in range(100)]
        assert all(later <= sooner + 1e-3 for sooner, later in pairwise(waits)), "more time never costs more"


def test_long_deadlines_use_bounded_tables() -> None:
    prices = RunPrices(spot=1.0, steady=3.0, spot_changeover_hours=0.1, steady_changeover_hours=0.1)
    costs = ExpectedCosts(memoryless(1.0, 2.0).chances, prices, 300.0, 10_000.0, 30 / 3600)
    assert costs.time_max < 1_300
    assert costs.idle(CLASSES, 9_000.0, 300.0) < 300 * 2
