"""Exchange rates: a dated table, and conversion between currencies.

A converted amount keeps the quoted amount, and every further conversion starts from that. So an amount is rounded
only once, and converting it back returns the quoted amount to the micro-unit.
The table is a data file (`data/rates.csv`); users can supply their own.
"""

import csv
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, unknown_name
from teraflock.base.money import MICROS, Money, divided, parse_micros

COLUMNS: Final = ("date", "currency", "per_usd", "source")


class Rate(msgspec.Struct, frozen=True):
    day: date
    currency: str
    micros_per_usd: int
    """Micro-units of `currency` that one US dollar buys."""
    source: str


class Exchanged(msgspec.Struct, frozen=True):
    money: Money
    quoted: Money


class Rates:
    """All rates of one table. A day uses its newest rate up to that day, or the oldest rate if there is none."""

    def __init__(self, rates: Iterable[Rate]) -> None:
        self._by_currency: dict[str, list[Rate]] = {}
        for rate in sorted(rates, key=lambda rate: rate.day):
            self._by_currency.setdefault(rate.currency, []).append(rate)
        self._by_currency.setdefault("USD", [Rate(date(1970, 1, 1), "USD", MICROS, "by definition")])

    def currencies(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_currency))

    def knows(self, currency: str) -> bool:
        return currency in self._by_currency

    def known(self, code: str) -> str:
        """The code in capitals. Raises `UnknownName` if there is no rate for it."""
        if not self.knows(code.upper()):
            raise unknown_name("currency", code, self.currencies(), see="`tera rates` lists all currencies")
        return code.upper()

    def rows(self) -> Sequence[Rate]:
        return [rate for currency in self.currencies() for rate in self._by_currency[currency]]

    def rate(self, currency: str, on: date) -> Rate:
        rates = self._by_currency.get(currency)
        if not rates:
            raise unknown_name(
                "currency", currency, self.currencies(), see="`tera rates` lists all currencies"
            )
        past = [rate for rate in rates if rate.day <= on]
        return past[-1] if past else rates[0]

    def exchange(self, amount: Money | Exchanged, to: str, *, on: date) -> Exchanged:
        quoted = amount.quoted if isinstance(amount, Exchanged) else amount
        if to == quoted.currency:
            return Exchanged(quoted, quoted)
        price_of_to, price_of_from = self.rate(to, on), self.rate(quoted.currency, on)
        micros = divided(quoted.micros * price_of_to.micros_per_usd, price_of_from.micros_per_usd)
        return Exchanged(Money(micros, to), quoted)


def read_rates(lines: Iterable[str], *, name: str) -> Rates:
    """Read a CSV with the columns date, currency, per_usd, source. One bad line rejects the whole file."""
    reader = csv.reader(lines)
    header = tuple(next(reader, ()))
    if header != COLUMNS:
        raise BadInput(
            f"{name} is not a table of exchange rates: its first line is `{','.join(header)[:80]}`",
            hint=f"The first line must be `{','.join(COLUMNS)}`",
        )
    return Rates([_rate_from(row, f"{name}, line {reader.line_num}") for row in reader if row])


def _rate_from(row: Sequence[str], where: str) -> Rate:
    if len(row) != len(COLUMNS):
        raise BadInput(f"{where}: expected {len(COLUMNS)} columns, found {len(row)}")
    day, currency, per_usd, source = (cell.strip() for cell in row)
    try:
        micros_per_usd = parse_micros(per_usd)
        on = date.fromisoformat(day)
    except ValueError:
        raise BadInput(f"{where}: `{day}` and `{per_usd}` are not a valid date and rate") from None
    if micros_per_usd <= 0:
        raise BadInput(f"{where}: the rate must be above zero, not `{per_usd}`")
    if not (len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper()):
        raise BadInput(
            f"{where}: `{currency}` is not a currency code", hint="Use three capital letters, such as `CNY`"
        )
    if currency == "USD" and micros_per_usd != MICROS:
        raise BadInput(f"{where}: the rate of USD must be 1, not `{per_usd}`")
    return Rate(on, currency, micros_per_usd, source)
