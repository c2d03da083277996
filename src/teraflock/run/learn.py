"""Learn from the past availability of places: how long each stays, and what follows when one is lost.

Zones fail together, so the joint behaviour is not computed from single zones. It is observed: `learn` follows the past
like a run that stays until it loses its place, and then takes the place that is expected to last longest. Without
any history, the priors of `survival.py` hold.
"""

from collections.abc import Sequence
from math import inf

import msgspec

from teraflock.run.model import Sight, sights_of
from teraflock.run.survival import (
    CLASSES,
    PRIOR_DOWN,
    PRIOR_UP,
    AgeTally,
    Survival,
    age_class,
    new_tally,
    tallies,
)

HORIZON_HOURS = 48.0  # places that last longer than this are equally good
ZONE_PRIOR_HOURS = 20.0
"""Of the rates of all zones times the pace of the zone: its own history has little of each age."""
CAUTION = 1.25
"""Several zones are expected to be lost this much oftener than they were, and to be away this much longer: they change
from week to week, and time that a run has lost in a bad week cannot be regained in a good one."""
OTHER_UP_CHANCE = 0.5  # prior chance that another place is available when one is lost


class Chances(msgspec.Struct, frozen=True):
    """How the best spot place behaves: while there is one, while there is none, and when one is lost."""

    up: Survival
    down: Survival
    after_loss: tuple[float, ...]
    """The chance that no place is left, then the chance of another place for each class of its age."""


class Knowledge(msgspec.Struct, frozen=True):
    zones: tuple[Survival, ...]
    """How long each spot place stays available, in the order of the places."""
    chances: Chances


def learn(
    histories: Sequence[Sequence[bool]],
    tick_hours: float,
    *,
    half_life_hours: float = inf,
    prior: tuple[Survival, Survival] | None = None,
) -> Knowledge:
    """Learn from one history for each spot place. Histories may be empty; those of several places are aligned.

    `prior` is what is known about unavailable and available periods elsewhere. Default: the shipped one, corrected by
    the histories together.
    """
    counted = [tallies(series, tick_hours, half_life_hours) for series in histories]
    down_prior, up_prior = prior or pooled(histories, tick_hours)
    if len(counted) == 1:
        (down, up) = (
            each.survival(tick_hours, of) for each, of in zip(counted[0], (down_prior, up_prior), strict=True)
        )
        return Knowledge((up,), Chances(up, down, _after_loss([0.0] * (CLASSES + 1), 1)))
    zones = tuple(
        up.survival(tick_hours, up_prior.times(up.pace(tick_hours, up_prior)), ZONE_PRIOR_HOURS)
        for _, up in counted
    )
    return Knowledge(zones, _joint(histories, zones, tick_hours, (down_prior, up_prior)))


def pooled(histories: Sequence[Sequence[bool]], tick_hours: float) -> tuple[Survival, Survival]:
    """Return the rates of unavailable and available periods over all histories together."""
    down, up = new_tally(), new_tally()
    for series in histories:
        more_down, more_up = tallies(series, tick_hours)
        down.add(more_down)
        up.add(more_up)
    return down.survival(tick_hours, Survival(PRIOR_DOWN)), up.survival(tick_hours, Survival(PRIOR_UP))


def _joint(
    histories: Sequence[Sequence[bool]],
    zones: Sequence[Survival],
    tick_hours: float,
    prior: tuple[Survival, Survival],
) -> Chances:
    sights = [sights_of(series, tick_hours) for series in histories]
    scores = [_scores(zone) for zone in zones]
    up, down, after = new_tally(), new_tally(), [0.0] * (CLASSES + 1)
    held: int | None = None
    down_ticks, before = 0, None
    for now in zip(*sights, strict=True):
        was, held = held, held if held is not None and now[held].up else _best(now, scores)
        down_ticks = 0 if held is not None else down_ticks + 1
        if before is not None:
            _note(up if was is not None else down, before, ended=held != was)
            if was is not None and held != was:
                after[0 if held is None else 1 + age_class(now[held].age_hours)] += 1
        before = age_class(now[held].age_hours if held is not None else down_ticks * tick_hours)
    return Chances(
        up.survival(tick_hours, prior[1]).times(CAUTION),
        down.survival(tick_hours, prior[0]).times(1 / CAUTION),
        _after_loss(after, len(zones)),
    )


def _scores(zone: Survival) -> tuple[float, ...]:
    """Return how long the place is expected to stay, for each class of age."""
    starts = (0.1, 0.25, 0.4, 0.75, 1.5, 3.0, 6.0, 12.0, 24.0)  # an age in each class
    return tuple(zone.residual_hours(age, HORIZON_HOURS) for age in starts)


def _best(now: Sequence[Sight], scores: Sequence[Sequence[float]]) -> int | None:
    found = [position for position, sight in enumerate(now) if sight.up]
    return max(found, key=lambda each: scores[each][age_class(now[each].age_hours)]) if found else None


def _note(tally: AgeTally, age: int, *, ended: bool) -> None:
    tally.ticks[age] += 1
    tally.ends[age] += ended


def _after_loss(counts: Sequence[float], places: int) -> tuple[float, ...]:
    """Return the distribution, with a prior that counts like one observed loss."""
    none = (1 - OTHER_UP_CHANCE) ** (places - 1)
    prior = (none, *((1 - none) / CLASSES for _ in range(CLASSES)))
    total = sum(counts) + 1
    return tuple((count + extra) / total for count, extra in zip(counts, prior, strict=True))
