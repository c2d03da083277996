"""The expected cost to finish a run from every state, by dynamic programming backwards from the deadline.

A state is the time left, the work left, what the run holds (nothing, a steady place, or a spot place with some of its
changeover left) and the class of age of the best spot place, or of the time without one. Tables hold the cost of each
action; between grid points they are interpolated along constant slack, where costs change least. A run that is late
pays a large penalty, so that costs near the guard are sensible; the guard itself is in `policy.py` and exact.
"""

from math import ceil
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from teraflock.run.learn import Chances
from teraflock.run.survival import AGES, CLASSES, ROUNDING_HOURS, age_class

Floats = npt.NDArray[np.float64]

STEP_HOURS: Final = 1 / 6  # ages below ten minutes are not told apart
STEPS_MAX: Final = 600  # bounds time and memory for long deadlines, by longer steps
SLACK_FACTOR_MAX: Final = 3.0  # more slack than this share of the work has no value
LATE_FACTOR: Final = 20.0  # an hour of work after the deadline costs this many steady hours
STATES: Final = 2 * CLASSES  # without a spot place by age, then with one by age


class RunPrices(msgspec.Struct, frozen=True, kw_only=True):
    """What the tables need to know about places: the best spot place and the best steady place."""

    spot: float
    steady: float
    spot_changeover_hours: float
    steady_changeover_hours: float


class ExpectedCosts:
    """Costs to finish, by action. Costs have the unit of the prices.

    A higher `late_factor` is closer to the guard at grid points, but blurs more between them.
    """

    def __init__(
        self,
        chances: Chances,
        prices: RunPrices,
        work: float,
        time: float,
        tick: float,
        late_factor: float = LATE_FACTOR,
    ) -> None:
        self._late_factor = late_factor
        self.time_max = min(time, work * (1 + SLACK_FACTOR_MAX) + 24)
        step = tick * max(1, round(STEP_HOURS / tick))
        self.step = tick * ceil(max(step, self.time_max / STEPS_MAX) / tick - ROUNDING_HOURS)
        self._spot_overhead = prices.spot_changeover_hours / self.step
        self._spot_stages = max(1, ceil(self._spot_overhead - ROUNDING_HOURS))
        overhead = prices.steady_changeover_hours / self.step
        self._points = ceil(work / self.step) + ceil(max(overhead, self._spot_overhead)) + 3
        self._tables = self._solved(_transitions(chances, self.step), prices, overhead)

    def idle(self, state: int, time: float, left: float) -> float:
        return self._at(state, time, left)

    def start_steady(self, state: int, time: float, left: float) -> float:
        return self._at(STATES + state, time, left)

    def keep_steady(self, state: int, time: float, left: float, overhead: float) -> float:
        return self._at(2 * STATES + state, time, left + overhead)

    def spot(self, age: int, time: float, left: float, overhead: float) -> float:
        """Return the cost of being at the spot place with this much of its changeover left."""
        if overhead <= ROUNDING_HOURS:
            return self._at(3 * STATES + self._spot_stages * CLASSES + age, time, left)
        steps = overhead / self.step
        stage = max(0, min(self._spot_stages - 1, round(self._spot_overhead - steps)))
        exact = left + (steps - (self._spot_overhead - stage)) * self.step
        return self._at(3 * STATES + stage * CLASSES + age, time, exact)

    def _at(self, row: int, time: float, left: float) -> float:
        steps, work = min(time, self.time_max) / self.step, left / self.step
        before = int(steps + ROUNDING_HOURS)
        share = steps - before
        if share < ROUNDING_HOURS:
            return self._point(before, row, work)
        low, high = self._point(before, row, work - share), self._point(before + 1, row, work + 1 - share)
        return (1 - share) * low + share * high

    def _point(self, time: int, row: int, work: float) -> float:
        if work <= ROUNDING_HOURS:
            return 0.0
        table = self._tables[min(time, len(self._tables) - 1)]
        work = min(work, self._points - 1.001)
        below = int(work)
        share = work - below
        return (1 - share) * table.item(row, below) + share * table.item(row, below + 1)

    def _solved(
        self, moves: tuple[Floats, Floats, Floats], prices: RunPrices, overhead: float
    ) -> list[npt.NDArray[np.float32]]:
        """Fill one table for each time left: rows are actions in states, columns are work left.

        The first column is not for finished work, but for very little work: it still costs a whole step.
        """
        every, stay, lost = moves
        stages, step = self._spot_stages, self.step
        late = self._late_factor * max(prices.spot, prices.steady, 1.0) * step * (1 + np.arange(self._points))
        idle = steady = np.tile(late, (STATES, 1))
        spot = np.tile(late, (stages + 1, CLASSES, 1))
        progress = [max(0.0, 1 - max(0.0, self._spot_overhead - stage)) for stage in range(stages)] + [1.0]
        shifts = [_Shift(each, self._points) for each in (1 - overhead, 1.0, *progress)]
        pay_steady, pay_spot = prices.steady * step, prices.spot * step
        tables = [np.zeros((3 * STATES + (stages + 1) * CLASSES, self._points), np.float32)]
        tables[0][:] = late
        for _ in range(ceil(self.time_max / step - ROUNDING_HOURS)):
            waits, after_steady, after_loss = every @ idle, every @ steady, lost @ idle
            starts, keeps = (pay_steady + shift(after_steady) for shift in shifts[:2])
            spots = [
                pay_spot + shift(stay @ spot[min(stage + 1, stages)] + after_loss)
                for stage, shift in enumerate(shifts[2:])
            ]
            idle = np.minimum(waits, starts)
            np.minimum(idle[CLASSES:], spots[0], out=idle[CLASSES:])
            steady = np.minimum(idle, keeps)
            spot = np.stack([np.minimum(idle[CLASSES:], each) for each in spots])
            tables.append(np.concatenate([waits, starts, keeps, *spots]).astype(np.float32))
        return tables


class _Shift:
    """Reads a table after some progress. Progress is in steps and may be a fraction, or negative."""

    def __init__(self, progress: float, points: int) -> None:
        work = np.clip(np.arange(points) - progress, 0, points - 1)
        self._below = np.minimum(work.astype(int), points - 2)
        self._share = work - self._below
        self._done = np.arange(points) - progress <= ROUNDING_HOURS

    def __call__(self, table: Floats) -> Floats:
        moved: Floats = (1 - self._share) * table[:, self._below] + self._share * table[:, self._below + 1]
        moved[:, self._done] = 0.0
        return moved


def _transitions(chances: Chances, step: float) -> tuple[Floats, Floats, Floats]:
    """Return the chances of the next state: in all, of staying at the spot place, and after losing it."""
    every, stay, lost = np.zeros((STATES, STATES)), np.zeros((CLASSES, CLASSES)), np.zeros((CLASSES, STATES))
    widths, fresh = np.diff([0.0, *AGES]), age_class(step)
    for age in range(CLASSES):
        moves_on = min(1.0, step / widths[age])
        older = min(age + 1, CLASSES - 1) if moves_on < 1 else age_class(AGES[age] + step)
        for rates, matrix in ((chances.down.rates, every[:CLASSES, :CLASSES]), (chances.up.rates, stay)):
            remains = np.exp(-rates[age] * step)
            matrix[age, older] += remains * moves_on
            matrix[age, age] += remains * (1 - moves_on)
        every[age, CLASSES + fresh] += -np.expm1(-chances.down.rates[age] * step)
        ends = -np.expm1(-chances.up.rates[age] * step)
        lost[age, fresh] = ends * chances.after_loss[0]
        lost[age, CLASSES:] = ends * np.array(chances.after_loss[1:])
    every[CLASSES:] = lost
    every[CLASSES:, CLASSES:] += stay
    return every, stay, lost
