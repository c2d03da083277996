"""Money: integer micro-units with a currency, and prices: money per period.

What holds:
- an amount is an integer of millionths; no float ever holds one;
- a month is 730 hours (8,760 / 12), so second, hour and month convert into each other exactly: every
  price has an exact integer form per month (`Price.micros_per_month`), by which prices are compared;
- what has accrued after some time is floored from the start of the time, never summed from rounded
  slices, so that a charge is the same however its time is cut (`accrued`, `accrued_between`);
- rounding is half to even, in one function (`divided`).
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, Literal, Self

import msgspec

Period = Literal["second", "hour", "month"]

HOURS_PER_MONTH: Final = 730
SECONDS: Final[dict[Period, int]] = {"second": 1, "hour": 3600, "month": HOURS_PER_MONTH * 3600}
MICROS: Final = 1_000_000


class Money(msgspec.Struct, frozen=True):
    micros: int
    currency: str

    def __add__(self, other: Self) -> "Money":
        return Money(self.micros + self._same(other).micros, self.currency)

    def __sub__(self, other: Self) -> "Money":
        return Money(self.micros - self._same(other).micros, self.currency)

    def __neg__(self) -> "Money":
        return Money(-self.micros, self.currency)

    def __mul__(self, times: int) -> "Money":
        return Money(self.micros * times, self.currency)

    def split(self, parts: int) -> tuple["Money", ...]:
        """Cut into `parts` whose sum is this amount; no two differ by more than one micro-unit."""
        edges = [self.micros * i // parts for i in range(parts + 1)]
        return tuple(Money(b - a, self.currency) for a, b in pairwise(edges))

    def _same(self, other: Self) -> Self:
        if other.currency != self.currency:
            raise ValueError(f"{other.currency} cannot be added to {self.currency} without a rate")
        return other


class Price(msgspec.Struct, frozen=True):
    """So much money for each period something is held."""

    micros: int
    currency: str
    per: Period

    @property
    def micros_per_month(self) -> int:
        """Exact for every period; the form by which prices are compared and stored."""
        return self.micros * (SECONDS["month"] // SECONDS[self.per])

    def per_period(self, per: Period) -> "Price":
        if per == self.per:
            return self
        return Price(micros_per(self.micros_per_month, per), self.currency, per)

    def accrued(self, seconds: int) -> Money:
        """What has been spent after `seconds`: floored once, from the start."""
        return Money(self.micros * seconds // SECONDS[self.per], self.currency)

    def accrued_between(self, start_seconds: int, end_seconds: int) -> Money:
        """What one slice of the time costs. The slices of a time always sum to the whole."""
        return self.accrued(end_seconds) - self.accrued(start_seconds)


def micros_per(micros_per_month: int, per: Period) -> int:
    """The amount for one `per` of an amount for one month, rounded half to even."""
    return divided(micros_per_month * SECONDS[per], SECONDS["month"])


def divided(numerator: int, denominator: int) -> int:
    """`numerator / denominator`, rounded half to even: the one rounding of the house."""
    if denominator < 0:
        numerator, denominator = -numerator, -denominator
    quotient, remainder = divmod(numerator, denominator)
    twice = 2 * remainder
    if twice > denominator or (twice == denominator and quotient % 2):
        quotient += 1
    return quotient


def parse_micros(text: str) -> int:
    """`"1.275"` → 1275000. Exact: more than six decimals are rounded half to even.

    Raises `ValueError` on anything that is not a plain finite decimal number.
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
    """`1e-05` and its like: rare in catalogs, so decimal is loaded only for them."""
    from decimal import Decimal, InvalidOperation

    try:
        value = Decimal(text.strip() if text.isascii() and "_" not in text else "no")
    except InvalidOperation:
        raise ValueError(f"not a number: {text!r}") from None
    if not value.is_finite() or abs(value.adjusted()) > AMOUNT_DIGITS_MAX:
        raise ValueError(f"not an amount: {text!r}")
    numerator, denominator = value.as_integer_ratio()
    return divided(numerator * MICROS, denominator)


AMOUNT_DIGITS_MAX: Final = 18  # a 64-bit column holds no more; no price is near it


SMALL_MICROS: Final = 1_000_000  # below one unit, two decimals would hide what a vCPU costs


def amount_text(micros: int, currency: str, decimals: int | None = None) -> str:
    """`12.50 USD`; small amounts with four places, unless it is said how many."""
    places = decimals_for([micros]) if decimals is None else decimals
    return f"{decimal_text(micros, places)} {currency}".rstrip()


def decimals_for(amounts: Iterable[int]) -> int:
    """Of a column of amounts: two, or four where one of them is small."""
    return 4 if any(0 < abs(each) < SMALL_MICROS for each in amounts) else 2


def decimal_text(micros: int, decimals: int) -> str:
    """`1275000` → `"1.275"` with 3 decimals. For people; machines get the micros."""
    rounded = divided(micros * 10**decimals, MICROS)
    sign, digits = ("-" if rounded < 0 else ""), str(abs(rounded)).rjust(decimals + 1, "0")
    if not decimals:
        return sign + f"{int(digits):,}"
    return f"{sign}{int(digits[:-decimals]):,}.{digits[-decimals:]}"
