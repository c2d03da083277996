"""Turns what runs saw of a spot place into its history. Pure.

A place is seen when a run asks for a machine there, and while it has one. Between two sights it counts as it was
before, for up to `GAP_US`. After a longer time nothing is known, and the history goes on with the next sight.
"""

from collections.abc import Sequence
from math import ceil
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import HOUR_US
from teraflock.run.model import RunSpec, Sight
from teraflock.run.sighting.model import SpotPeriod

GAP_US: Final = 6 * HOUR_US
NOTE_US: Final = HOUR_US // 12
"""An unchanged place is written this often at most."""
TICK_HOURS: Final = 1 / 6
"""Of the history that is learned from."""
STARTS_KEPT: Final = 20
STARTS_MIN: Final = 3
"""With fewer measured starts, the changeover is at least what is assumed without any."""
START_MARGIN: Final = 1.5
CHANGEOVER_HOURS_MIN: Final = 0.05
HISTORY_US: Final = 28 * 24 * HOUR_US


def changeover_hours(seconds: Sequence[int], assumed_hours: float) -> float:
    """How long a start takes at most, from the newest measured ones. The guard relies on it, so it has a margin."""
    longest = max(seconds, default=0) * START_MARGIN / 3600
    if len(seconds) < STARTS_MIN:
        return max(assumed_hours, longest)
    return max(CHANGEOVER_HOURS_MIN, ceil(longest * 100) / 100)  # few values, so that policies are shared


def place_of(spec: RunSpec) -> str:
    """Names a spot place: own hosts by GPU model, rented machines by type and region."""
    if spec.type or spec.provider:
        return "/".join((spec.site or spec.provider, spec.type or spec.shape.gpu or "", spec.region))
    return f"own/{spec.shape.gpu or spec.shape.name or ''}"


def noted(last: SpotPeriod | None, place: str, now_us: int, *, up: bool) -> tuple[SpotPeriod, ...]:
    """The rows to write after a sight: none if too little has changed."""
    new = SpotPeriod(place=place, from_us=now_us, until_us=now_us, up=up)
    if last is None or now_us - last.until_us > GAP_US:
        return (new,)
    if now_us <= last.until_us:
        return ()
    if last.up != up:
        return (replace(last, until_us=now_us), new)
    return (replace(last, until_us=now_us),) if now_us - last.until_us >= NOTE_US else ()


def sight_of(last: SpotPeriod | None, now_us: int, *, up: bool) -> Sight:
    """What a run sees now, with the age of the period."""
    known = last is not None and last.up == up and now_us - last.until_us <= GAP_US
    since_us = last.from_us if last is not None and known else now_us
    return Sight(up, max(TICK_HOURS, (now_us - since_us) / HOUR_US))


def series_of(sightings: Sequence[SpotPeriod]) -> tuple[bool, ...]:
    """The history in ticks. Short periods have one tick."""
    found: list[bool] = []
    for each in sightings:
        ticks = round((each.until_us - each.from_us) / HOUR_US / TICK_HOURS)
        found += [each.up] * max(1, ticks)
    return tuple(found)
