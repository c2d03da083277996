"""Parses the values of a price book: prices, percentages, times, currencies. Errors name the line."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Final, TypeVar

from teraflock.base.clock import LATEST, microseconds
from teraflock.base.exchange import Rates
from teraflock.base.money import Period as Per
from teraflock.base.money import Price, parse_micros
from teraflock.bill.price.model import BASIS
from teraflock.bill.price.sheet import WORD_MAX, Node, Sheet

T = TypeVar("T")

MINIMUM_SECONDS_MAX: Final = 86_400
MICROS_MAX: Final = 10**15
"""A billion per month for one unit. A higher price is a typing error, and sums would not fit into 64 bits."""
YEARS: Final = re.compile(r"(\d+)\s*years?")
DAYS: Final = re.compile(r"(\d{1,4})\s*days?")

_AMOUNT: Final = re.compile(r"(-?\d{1,12}(?:\.\d{1,9})?)\s*(?:/\s*(second|hour|month))?")
_PERCENT: Final = re.compile(r"(\d{1,3}(?:\.\d{1,2})?)\s*%")
_SECONDS: Final = re.compile(r"(\d{1,6})\s*(?:s|seconds?)?")


def amount(sheet: Sheet, node: Node, *, timed: bool = True) -> int:
    """Micro-units per month, or per unit if not `timed`."""
    text = sheet.text(node)
    match = _AMOUNT.fullmatch(text)
    if not match or bool(match[2]) != timed:
        form = "`3.06/hour`, with second, hour or month" if timed else "`0.05`, per GB"
        raise sheet.bad(node, f"`{text[:WORD_MAX]}` is not a price", f"Write it as {form}")
    if match[1].startswith("-"):
        raise sheet.bad(node, f"the price `{text}` is negative")
    per: Per = match[2] if timed else "month"  # type: ignore[assignment]
    micros = Price(parse_micros(match[1]), "", per).micros_per_month
    if micros > MICROS_MAX:
        raise sheet.bad(node, f"the price `{text}` is above one billion per month")
    return micros


def percent(sheet: Sheet, node: Node) -> int:
    """A percentage in basis points."""
    text = sheet.text(node)
    match = _PERCENT.fullmatch(text)
    if not match or float(match[1]) > 100:
        raise sheet.bad(node, f"`{text[:WORD_MAX]}` is not a percentage", "Write it as `12.5%`, up to `100%`")
    return parse_micros(match[1]) * BASIS // 100_000_000


def steps(
    sheet: Sheet, node: Node | None, form: re.Pattern[str], unit: str, allowed: range | tuple[int, ...]
) -> dict[int, int]:
    """Percentages by years or days."""
    found = {}
    for key, value in sheet.entries(node) if node is not None else ():
        match = form.fullmatch(sheet.text(key))
        if not match or int(match[1]) not in allowed:
            what = f"`{sheet.text(key)}` is not a number of {unit} from {allowed[0]} to {allowed[-1]}"
            raise sheet.bad(key, what, f"Write it with its unit, such as `{allowed[-1]} {unit}`")
        found[int(match[1])] = percent(sheet, value)
    return found


def tax(sheet: Sheet, node: Node) -> tuple[str, int]:
    entries = sheet.entries(node)
    if len(entries) != 1:
        raise sheet.bad(node, "expected one tax, such as `{VAT: 20%}`")
    return sheet.text(entries[0][0]), percent(sheet, entries[0][1])


def minimum_seconds(sheet: Sheet, node: Node) -> int:
    text = sheet.text(node)
    match = _SECONDS.fullmatch(text)
    if not match or int(match[1]) > MINIMUM_SECONDS_MAX:
        raise sheet.bad(
            node, f"`{text[:WORD_MAX]}` is not a duration of at most one day", "Write it as `60 seconds`"
        )
    return int(match[1])


def currency(sheet: Sheet, node: Node, rates: Rates) -> str:
    text = sheet.text(node)
    if not rates.knows(text):
        known = ", ".join(rates.currencies())
        what = f"the currency `{text[:WORD_MAX]}` has no exchange rate"
        raise sheet.bad(node, what, f"Currencies with a rate: {known}")
    return text


def time_us(sheet: Sheet, node: Node) -> int:
    text = sheet.text(node)
    at = _parsed(datetime.fromisoformat, text) if len(text) > len("2026-01-01") else None
    day = _parsed(date.fromisoformat, text) if at is None else None
    if day is not None:
        at = datetime(day.year, day.month, day.day, tzinfo=UTC)
    if at is None or at.tzinfo is None:
        what = f"`{text[:WORD_MAX]}` is not a date"
        raise sheet.bad(node, what, "Write `2026-01-01`, or a time with its time zone")
    if at > LATEST:
        what = f"`{text[:WORD_MAX]}` is too far in the future"
        raise sheet.bad(node, what, f"Write a date before {LATEST:%Y}, or remove `until`")
    return microseconds(at)


def _parsed(read: Callable[[str], T], text: str) -> T | None:
    try:
        return read(text)
    except ValueError:
        return None
