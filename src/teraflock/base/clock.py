"""The clock, passed in as an argument. Only `SystemClock` reads the system time, so all other code can be replayed."""

from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol

SECOND_US: Final = 1_000_000
HOUR_US: Final = 3600 * SECOND_US
DAY_US: Final = 24 * HOUR_US


class Clock(Protocol):
    def now(self) -> datetime:
        """The current time, in UTC."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class FixedClock:
    """A clock that changes only when you call `move`. For tests, and for answers `--as-of` a day."""

    def __init__(self, at: datetime) -> None:
        if at.tzinfo is None:
            raise ValueError("a clock needs a time with a zone")
        self._at = at.astimezone(UTC)

    def now(self) -> datetime:
        return self._at

    def move(self, by: timedelta) -> None:
        self._at += by


def today(clock: Clock) -> date:
    return clock.now().date()


LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
"""The latest time that a request may contain. Times near the year 9999 overflow in other time zones or when rounded."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(at: datetime) -> int:
    """Convert a time to the form used in rows: microseconds since 1970. Exact, unlike `timestamp()`."""
    return (at - _EPOCH) // _MICROSECOND


def at_microseconds(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
