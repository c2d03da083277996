"""How long a spot place stays available or unavailable, by how long it has been so.

Spot availability is heavy-tailed: a third of all periods last one tick, and the longer one has lasted, the longer it
will. So the rate at which a period ends depends on its age, in the classes of `AGES`. Rates are per hour and hold for
any tick. With little history they stay close to a prior.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby
from math import expm1, inf, log1p
from typing import Final

import msgspec

AGES: Final = (1 / 6, 1 / 3, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0, inf)
"""The upper end of each class of ages, in hours."""
CLASSES: Final = len(AGES)

PRIOR_UP: Final = (2.50, 1.50, 0.98, 0.82, 0.54, 0.32, 0.22, 0.16, 0.10)
PRIOR_DOWN: Final = (3.68, 1.55, 0.94, 0.88, 0.56, 0.31, 0.20, 0.15, 0.06)
"""Rates per hour at which available and unavailable periods end: `python -m bench spot --fit` on the first half of
eight public series of 2022 (AWS, K80 and V100, two zones, 27 days, every 10 minutes)."""

PRIOR_HOURS: Final = 5.0  # the prior counts like this many observed hours in each class
PACE_ENDS: Final = 3.0  # of a zone as flaky as the others: its own periods count beside this many ends
CHANCE_MIN: Final = 1e-5  # no period lasts for ever, and none ends for sure
CHANCE_MAX: Final = 0.98
ROUNDING_HOURS: Final = 1e-6  # so that six times ten minutes is not more than an hour


class Survival(msgspec.Struct, frozen=True):
    """The rates at which periods of one kind end, by class of age."""

    rates: tuple[float, ...]

    def times(self, factor: float) -> "Survival":
        return Survival(tuple(rate * factor for rate in self.rates))

    def residual_hours(self, age_hours: float, horizon_hours: float) -> float:
        """Return the expected remaining time, counted up to a horizon."""
        survives, total, age, left = 1.0, 0.0, age_hours, horizon_hours
        for rate, end in zip(self.rates[age_class(age_hours) :], AGES[age_class(age_hours) :], strict=True):
            span = min(left, end - age)
            if span <= 0:
                continue
            ended = -expm1(-rate * span)
            total += survives * (ended / rate if rate * span > ROUNDING_HOURS else span)
            survives *= 1 - ended
            age, left = age + span, left - span
        return total


class AgeTally(msgspec.Struct):
    """Observed ticks and ends by class of age, for available (`up`) or unavailable periods."""

    ticks: list[float]
    ends: list[float]

    def add(self, other: "AgeTally") -> None:
        for mine, others in ((self.ticks, other.ticks), (self.ends, other.ends)):
            for position, value in enumerate(others):
                mine[position] += value

    def pace(self, tick_hours: float, prior: Survival) -> float:
        """How many periods ended for each one that should have at the rates of a prior, over all ages."""
        expected = sum(
            -ticks * expm1(-rate * tick_hours) for ticks, rate in zip(self.ticks, prior.rates, strict=True)
        )
        return (sum(self.ends) + PACE_ENDS) / (expected + PACE_ENDS)

    def survival(self, tick_hours: float, prior: Survival, prior_hours: float = PRIOR_HOURS) -> Survival:
        """Return rates between what was observed and the prior."""
        weight = prior_hours / tick_hours
        return Survival(
            tuple(
                _rate((ends - weight * expm1(-rate * tick_hours)) / (ticks + weight), tick_hours)
                for ticks, ends, rate in zip(self.ticks, self.ends, prior.rates, strict=True)
            )
        )


def new_tally() -> AgeTally:
    return AgeTally([0.0] * CLASSES, [0.0] * CLASSES)


def age_class(age_hours: float) -> int:
    return bisect_left(AGES, age_hours - ROUNDING_HOURS)


def tallies(
    series: Sequence[bool], tick_hours: float, half_life_hours: float = inf
) -> tuple[AgeTally, AgeTally]:
    """Count the unavailable and the available periods of a series. Old periods count less with a half-life."""
    down, up = new_tally(), new_tally()
    bounds = [int((end + ROUNDING_HOURS) / tick_hours) if end < inf else len(series) for end in AGES]
    position = 0
    for is_up, group in groupby(series):
        length = sum(1 for _ in group)
        position += length
        ended = position < len(series)
        weight = 0.5 ** ((len(series) - position) * tick_hours / half_life_hours)
        _count(up if is_up else down, length, bounds, weight, ended=ended)
    return down, up


def _count(tally: AgeTally, length: int, bounds: Sequence[int], weight: float, *, ended: bool) -> None:
    """Add one period. The last tick of a series shows nothing: its next tick is unknown."""
    observed = length if ended else length - 1
    low = 0
    for position, high in enumerate(bounds):
        if low >= observed:
            break
        tally.ticks[position] += weight * max(0, min(high, observed) - low)
        if ended and low < observed <= high:
            tally.ends[position] += weight
        low = max(low, high)


def _rate(chance: float, tick_hours: float) -> float:
    return -log1p(-min(max(chance, CHANCE_MIN), CHANCE_MAX)) / tick_hours
