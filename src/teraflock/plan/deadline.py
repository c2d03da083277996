"""Parse a deadline as people write it: `36h`, `5 days`, `2w`, `friday`, `2026-11-20T18:00`.

Pure: the time now is an argument. A day without a time means its end. Times without a zone are UTC, and the plan shows
the deadline that it understood.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from teraflock.base.errors import BadInput

HOURS_MAX: Final = 1e6
HINT: Final = "Write `36h`, `5d`, `2w`, `friday`, `2026-11-20` or `2026-11-20T18:00`"
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
UNITS: Final = {"m": 1 / 60, "min": 1 / 60, "minute": 1 / 60, "h": 1.0, "hour": 1.0, "d": 24.0, "day": 24.0,
                "w": 168.0, "week": 168.0}  # fmt: skip

_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]+)", re.ASCII)
_DURATION: Final = re.compile(rf"(?:in\s+)?(?:{_PART.pattern}\s*)+", re.ASCII)
_CLOCK: Final = re.compile(r"(?:at\s+)?([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_TO_THE_END: Final = timedelta(hours=23, minutes=59, seconds=59)


def deadline_hours(text: str, now: datetime) -> float:
    """Return the hours from now until the deadline."""
    words = _words(text)
    hours = _duration(words)
    if hours is None:
        at = _moment(words, now)
        if at is None:
            raise BadInput(f"`{text}` is not a deadline", hint=HINT)
        hours = (at - now).total_seconds() / 3600
    if hours <= 0:
        raise BadInput(f"The deadline `{text}` has passed", hint="Give a time in the future")
    if hours > HOURS_MAX:
        raise BadInput(f"The deadline `{text}` is too far away", hint=HINT)
    return hours


def deadline_at(text: str, now: datetime) -> datetime | None:
    """Return the time that a date or the name of a day means. None for a duration."""
    return _moment(_words(text), now)


def _words(text: str) -> str:
    return " ".join(text.lower().split())


def _duration(words: str) -> float | None:
    if not _DURATION.fullmatch(words):
        return None
    parts = [(float(number), UNITS.get(unit) or UNITS.get(unit.removesuffix("s"))) for number, unit in
             _PART.findall(words)]  # fmt: skip
    return (
        None if any(unit is None for _, unit in parts) else sum(count * (unit or 0) for count, unit in parts)
    )


def _moment(words: str, now: datetime) -> datetime | None:
    written = _calendar(words)
    if written:
        return written
    day, _, clock = words.removeprefix("by ").partition(" ")
    ahead = _days_ahead(day, now)
    at = _CLOCK.fullmatch(clock) if clock else None
    if ahead is None or (clock and not at):
        return None
    start = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=ahead)
    if at:
        return start + timedelta(hours=int(at[1]), minutes=int(at[2]))
    return start + _TO_THE_END


def _days_ahead(day: str, now: datetime) -> int | None:
    if day in ("today", "tomorrow"):
        return int(day == "tomorrow")
    matching = [i for i, name in enumerate(DAYS) if len(day) >= 3 and name.startswith(day)]
    return (matching[0] - now.astimezone(UTC).weekday()) % 7 if len(matching) == 1 else None


def _calendar(words: str) -> datetime | None:
    """Parse an ISO date, with or without a time and a zone, as UTC."""
    text = words.upper()
    try:
        found = datetime.fromisoformat(text)
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        return found if len(text) > len("2026-11-20") else found + _TO_THE_END
    except (ValueError, OverflowError):  # overflow: the zone shifts it beyond the calendar
        return None
