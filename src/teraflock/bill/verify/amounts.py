"""Computes what a span must cost up to given times.

The sum is exact from the start of the span, in fractions, and is rounded down only at the given times. It is computed
in steps that end wherever a price may change.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from teraflock.base.clock import DAY_US
from teraflock.bill.price.model import Period, PriceBook, PricedPeriod, PricePlace
from teraflock.bill.verify.timeline import Span

MONTH_US = 730 * 60 * 60 * 10**6
GB = 1024**3
PARTS = ("gpu", "vcpu", "ram", "disk", "snapshot")
QUANTITIES = ("gpus", "vcpus", "ram_bytes", "disk_bytes", "snapshots_bytes")
IN_BYTES = ("ram", "disk", "snapshot")


class Bought(msgspec.Struct, frozen=True, kw_only=True):
    """A period of an instance that a purchase pays for, up to a shape."""

    purchase_id: str
    from_us: int
    until_us: int
    shape: dict[str, Any]


class At(NamedTuple):
    """The amounts up to a time, rounded down: by part, and at list price."""

    parts: tuple[int, ...]
    listed: int


class Tariffs:
    """The price book in the required currencies."""

    def __init__(self, book: PriceBook) -> None:
        self.book = book
        self._priced: dict[tuple[int, int, str], PricedPeriod] = {}

    def unit(self, period: Period, currency: str, span: Span, mode: str, part: str) -> int:
        key = (period.version, period.from_us, currency)
        if mode == "bid" and part == "gpu":
            rates, own = period.prices.rates, self.book.currency
            month = Fraction(span.says("card_micros_per_hour") * 730)
            return round(month if currency == own else month * Fraction(rates[currency], rates[own]))
        mode = "spot" if mode == "bid" else mode
        if key not in self._priced:
            self._priced[key] = PricedPeriod(period, currency)
        units = self._priced[key].units(
            span.says("gpu"), mode, PricePlace(span.says("host"), span.says("region"))
        )
        return int(getattr(units, part))


def accrued(
    span: Span, times: Iterable[int], tariffs: Tariffs, currency: str, bought: Sequence[Bought]
) -> dict[int, At]:
    """The cost of a span from its start up to each of these times."""
    asked = sorted(set(times))
    edges = sorted({span.from_us, *asked, *_changes(span, asked[-1], tariffs.book, bought)})
    sums, listed = [Fraction(0)] * len(PARTS), [Fraction(0)] * len(PARTS)
    found = {span.from_us: At((0,) * len(PARTS), 0)}
    for begin_us, end_us in pairwise(edges):
        period = tariffs.book.at(begin_us)
        if period is not None:
            share = Fraction(end_us - begin_us, MONTH_US)
            kept = 1 - Fraction(discount_bp(span, period, begin_us), 10_000)
            for index, part in enumerate(PARTS):
                held, beyond = _quantity(span, index), _beyond(span, index, covering(bought, begin_us))
                if held:
                    unit = tariffs.unit(period, currency, span, span.says("mode"), part)
                    sums[index] += unit * beyond * share * kept
                    of_list = (
                        span.says("mode")
                        if span.says("mode") in ("image", "address", "data")
                        else "on-demand"
                    )
                    listed[index] += tariffs.unit(period, currency, span, of_list, part) * held * share
        found[end_us] = At(tuple(each.__floor__() for each in sums), sum(each.__floor__() for each in listed))
    return found


def minimum(span: Span, tariffs: Tariffs, currency: str, bought: Sequence[Bought]) -> int:
    """The extra charge for a run that the tenant ended before the minimum time."""
    if not span.ends_run or span.operator_fault or span.run_us is None or span.until_us == span.run_us:
        return 0
    assert span.until_us is not None
    period = tariffs.book.at(span.run_us)
    lacking = 0 if period is None else period.prices.minimum_seconds * 10**6 - (span.until_us - span.run_us)
    if period is None or lacking <= 0:
        return 0
    cover = covering(bought, span.run_us)
    amounts = [
        tariffs.unit(period, currency, span, span.says("mode"), part) * _beyond(span, index, cover)
        * Fraction(lacking, MONTH_US)
        for index, part in enumerate(PARTS[:3])
    ]  # fmt: skip
    return sum(amount.__floor__() for amount in amounts)


def discount_bp(span: Span, period: Period, at_us: int) -> int:
    """The long-term discount that a run has reached."""
    if span.run_us is None or span.says("mode") != "on-demand":
        return 0
    reached = [bp for days, bp in period.prices.long_term if at_us >= span.run_us + days * DAY_US]
    return max(reached, default=0)


def covering(bought: Sequence[Bought], us: int) -> Bought | None:
    for each in bought:
        if each.from_us <= us < each.until_us:
            return each
    return None


def _quantity(span: Span, index: int) -> Fraction:
    amount = span.says(QUANTITIES[index])
    return Fraction(amount, GB) if PARTS[index] in IN_BYTES else Fraction(amount)


def _beyond(span: Span, index: int, cover: Bought | None) -> Fraction:
    held, name = _quantity(span, index), QUANTITIES[index]
    if (
        cover is None
        or name not in cover.shape
        or (name == "gpus" and cover.shape["gpu"] != span.says("gpu"))
    ):
        return held
    paid = Fraction(cover.shape[name], GB) if PARTS[index] in IN_BYTES else Fraction(cover.shape[name])
    return max(Fraction(0), held - paid)


def _changes(span: Span, until_us: int, book: PriceBook, bought: Sequence[Bought]) -> set[int]:
    """All times within a span at which the price may change."""
    times = {us for each in bought for us in (each.from_us, each.until_us)}
    prices = book.changes(span.from_us, until_us)
    times.update(prices)
    for at_us in (span.from_us, *prices):
        period = book.at(at_us)
        if period is not None and span.run_us is not None:
            times.update(span.run_us + days * DAY_US for days, _ in period.prices.long_term)
    return {us for us in times if span.from_us < us < until_us}
