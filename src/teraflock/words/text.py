"""Times, ages, durations and details as text."""

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from teraflock.base.clock import at_microseconds
from teraflock.base.money import amount_text, decimal_text
from teraflock.base.quantities import bytes_text

SIMULATED: Final = "SIMULATED"
"""The mark on everything that the simulated engine runs."""
SECONDS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_AGES: Final = ((86400 * 2, 86400, "d"), (3600 * 2, 3600, "h"), (60 * 2, 60, "min"), (0, 1, "s"))


def duration_text(seconds: int) -> str:
    """`5400` → `1h30m`."""
    parts = []
    for unit, length in SECONDS.items():
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def age_text(then: datetime, now: datetime) -> str:
    """`90 s`, `5 min`, `47 h`, `3 d`."""
    seconds = max(0, int((now - then) / timedelta(seconds=1)))
    for least, unit_seconds, unit in _AGES:
        if seconds >= least:
            return f"{seconds // unit_seconds} {unit}"
    raise AssertionError("the last unit begins at 0")


def time_text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def details_text(details: Mapping[str, object]) -> str:
    """`spent=3.25USD stop_at=…`: amounts with their currency, times and sizes in readable form."""
    currency = str(details.get("currency", ""))
    has_amount = any(key.endswith("_micros") for key in details)
    return " ".join(
        _pair_text(key, value, currency)
        for key, value in details.items()
        if not (key == "currency" and has_amount)
    )


def _pair_text(key: str, value: object, currency: str = "") -> str:
    if key.startswith("micros_per_") and isinstance(value, int):
        return f"per_{key.removeprefix('micros_per_')}={decimal_text(value, 4)}{currency}"
    if key.endswith("_micros") and isinstance(value, int):
        return f"{key.removesuffix('_micros')}={amount_text(value, currency).replace(' ', '')}"
    if key.endswith("_us") and isinstance(value, int):
        return f"{key.removesuffix('_us')}={time_text(at_microseconds(value)).replace(' ', 'T')}Z"
    if key.endswith("_bytes") and isinstance(value, int):
        return f"{key.removesuffix('_bytes')}={bytes_text(value).replace(' ', '')}"
    text = "-" if value is None else str(value)
    return f"{key}={shlex.quote(text) if ' ' in text else text}"
