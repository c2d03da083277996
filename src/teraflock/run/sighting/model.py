"""What runs saw of a place: periods in which it was available, or was not, and how long they took to start."""

import msgspec


class SpotPeriod(msgspec.Struct, frozen=True, kw_only=True):
    place: str
    from_us: int
    until_us: int
    up: bool


class MeasuredStart(msgspec.Struct, frozen=True, kw_only=True):
    """How long a run took from the launch of its machine to its command, without making the image of a setup."""

    place: str
    at_us: int
    seconds: int
