"""Money: integer micro-units with a currency. Prices: money per period.

Invariants:
- an amount is an integer number of millionths, never a float;
- a month is 730 hours (8,760 / 12), so second, hour and month convert exactly: every price has an exact integer
  amount per month (`Price.micros_per_month`), which is used to compare prices;
- prices are rounded half to even, in one function (`divided`). Charges are rounded by `bill/charge/`.
"""

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Final, Literal

import msgspec

Period = Literal["second", "hour", "month"]

HOURS_PER_MONTH: Final = 730
SECONDS: Final[dict[Period, int]] = {"second": 1, "hour": 3600, "month": HOURS_PER_MONTH * 3600}
MICROS: Final = 1_000_000
AMOUNT_DIGITS_MAX: Final = 18  # the limit of a 64-bit column; no real price comes near it


class Money(msgspec.Struct, frozen=True):
    micros: int
    currency: str


class Price(msgspec.Struct, frozen=True):
    """An amount of money per period."""

    micros: int
    currency: str
    per: Period

    @property
    def micros_per_month(self) -> int:
        """Exact for every period. Prices are compared and stored in this form."""
        return self.micros * (SECONDS["month"] // SECONDS[self.per])


def micros_per(micros_per_month: int, per: Period) -> int:
    """Convert an amount per month to an amount per `per`, rounded half to even."""
    return divided(micros_per_month * SECONDS[per], SECONDS["month"])


def divided(numerator: int, denominator: int) -> int:
    """`numerator / denominator`, rounded half to even. All rounding of money uses this function."""
    if denominator < 0:
        numerator, denominator = -numerator, -denominator
    quotient, remainder = divmod(numerator, denominator)
    twice = 2 * remainder
    if twice > denominator or (twice == denominator and quotient % 2):
        quotient += 1
    return quotient


def parse_micros(text: str) -> int:
    """`"1.275"` → 1275000. Exact: more than six decimals are rounded half to even.

    Raises `ValueError` for anything that is not a plain finite decimal number.
    """
    whole, _, decimals = text.strip().partition(".")
    sign = -1 if whole.startswith("-") else 1
    digits = whole.removeprefix("-") if sign < 0 else whole
    if not (digits + decimals).isdigit() or not text.isascii():
        return _parse_scientific(text)
    scale = max(len(decimals), 6)
    exact = int(digits + decimals.ljust(scale, "0"))
    return sign * divided(exact, 10 ** (scale - 6))


def _parse_scientific(text: str) -> int:
    """Parse numbers such as `1e-05`. They are rare in catalogs."""

    try:
        value = Decimal(text.strip() if text.isascii() and "_" not in text else "no")
    except InvalidOperation:
        raise ValueError(f"not a number: {text!r}") from None
    if not value.is_finite() or abs(value.adjusted()) > AMOUNT_DIGITS_MAX:
        raise ValueError(f"not an amount: {text!r}")
    numerator, denominator = value.as_integer_ratio()
    return divided(numerator * MICROS, denominator)


SMALL_MICROS: Final = 1_000_000  # below one unit, two decimals would hide the price of a vCPU
TINY_MICROS: Final = 100  # below the fourth decimal


def amount_text(micros: int, currency: str, decimals: int | None = None) -> str:
    """`12.50 USD`. Small amounts have four decimals unless `decimals` is set, and six if four would show zero."""
    places = decimals_for([micros]) if decimals is None else decimals
    if decimals is None and 0 < abs(micros) < TINY_MICROS:
        places = 6
    return f"{decimal_text(micros, places)} {currency}".rstrip()


def decimals_for(amounts: Iterable[int]) -> int:
    """Decimals for a column of amounts: four if any of them is small, otherwise two."""
    return 4 if any(0 < abs(each) < SMALL_MICROS for each in amounts) else 2


def decimal_text(micros: int, decimals: int) -> str:
    """`1275000` → `"1.275"` with 3 decimals. For people; programs use the micro-units."""
    rounded = divided(micros * 10**decimals, MICROS)
    sign, digits = ("-" if rounded < 0 else ""), str(abs(rounded)).rjust(decimals + 1, "0")
    if not decimals:
        return sign + f"{int(digits):,}"
    return f"{sign}{int(digits[:-decimals]):,}.{digits[-decimals:]}"
