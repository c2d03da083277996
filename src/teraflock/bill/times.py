"""Times of the books: microseconds since 1970, UTC. Months are written as `2026-11`."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from teraflock.base.clock import at_microseconds as moment
from teraflock.base.clock import microseconds

__all__ = ["microseconds", "moment", "month_bounds", "months_later"]


@lru_cache(maxsize=256)
def month_bounds(month: str) -> tuple[int, int]:
    """The first microsecond of a month and of the next one."""
    first = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
    return microseconds(first), microseconds(months_later(first, 1))


def months_later(at: datetime, months: int) -> datetime:
    """The same day and time some months later, or the last day of a month that is too short."""
    index = at.year * 12 + at.month - 1 + months
    year, month = divmod(index, 12)
    first_of_next = datetime(year + (month + 1) // 12, (month + 1) % 12 + 1, 1, tzinfo=UTC)
    last_day = (first_of_next - timedelta(days=1)).day
    return at.replace(year=year, month=month + 1, day=min(at.day, last_day))
