"""What a machine costs for a number of hours: by the hour, or for whole months that must be paid anyway. Pure."""

import math
from typing import Final

import msgspec

from teraflock.base.money import HOURS_PER_MONTH, divided

WHOLE_MONTHS: Final = frozenset({"monthly", "reserved"})


class HoursTotal(msgspec.Struct, frozen=True, kw_only=True):
    micros: int
    months: int
    """The whole months that are paid. 0: paid by the hour."""


def for_hours(micros_per_month: int, mode: str, hours: int, term_months: int | None = None) -> HoursTotal:
    """A month has 730 hours. A reservation is paid for its whole term, even if it is used for less."""
    if mode in WHOLE_MONTHS:
        months = max(math.ceil(hours / HOURS_PER_MONTH), term_months or 1)
        return HoursTotal(micros=micros_per_month * months, months=months)
    return HoursTotal(micros=divided(micros_per_month * hours, HOURS_PER_MONTH), months=0)
