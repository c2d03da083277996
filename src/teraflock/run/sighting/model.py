"""Periods in which a spot place was available, or was not."""

import msgspec


class SpotPeriod(msgspec.Struct, frozen=True, kw_only=True):
    place: str
    from_us: int
    until_us: int
    up: bool
