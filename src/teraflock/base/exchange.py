"""Exchange rates: a dated table, and the one way from one currency to another.

A converted amount remembers what was quoted, and every further conversion starts from that: so an amount
is rounded once, and converting back gives the quoted amount to the micro-unit.
The table is data (`data/rates.csv`), and the user may put another in its place.
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
    """All rates of one table. For a day it uses the newest rate not after it, else the oldest there is."""

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
        """The code of a currency for which there is a rate, in capitals."""
        if not self.knows(code.upper()):
            raise unknown_name("currency", code, self.currencies(), see="`tera rates` lists them")
        return code.upper()

    def rows(self) -> Sequence[Rate]:
        return [rate for currency in self.currencies() for rate in self._by_currency[currency]]

    def rate(self, currency: str, on: date) -> Rate:
        rates = self._by_currency.get(currency)
        if not rates:
            raise unknown_name("currency", currency, self.currencies(), see="`tera rates` lists them")
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
    """The rates in a CSV with the columns date, currency, per_usd, source. Refused as a whole or taken."""
    reader = csv.reader(lines)
    header = tuple(next(reader, ()))
    if header != COLUMNS:
        raise BadInput(
            f"{name} is no table of exchange rates: its first line reads `{','.join(header)[:80]}`",
            hint=f"The first line must be `{','.join(COLUMNS)}`",
        )
    return Rates([_rate_from(row, f"{name}, line {reader.line_num}") for row in reader if row])


def _rate_from(row: Sequence[str], where: str) -> Rate:
    if len(row) != len(COLUMNS):
        raise BadInput(f"{where}: {len(COLUMNS)} columns are needed, {len(row)} are there")
    day, currency, per_usd, source = (cell.strip() for cell in row)
    try:
        micros_per_usd = parse_micros(per_usd)
        on = date.fromisoformat(day)
    except ValueError:
        raise BadInput(f"{where}: `{day}` and `{per_usd}` are not a date and a rate") from None
    if micros_per_usd <= 0:
        raise BadInput(f"{where}: a rate is above zero, not `{per_usd}`")
    if not (len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper()):
        raise BadInput(f"{where}: `{currency}` is no currency code", hint="Three capitals, such as `CNY`")
    if currency == "USD" and micros_per_usd != MICROS:
        raise BadInput(f"{where}: one US dollar is one US dollar, not `{per_usd}`")
    return Rate(on, currency, micros_per_usd, source)
