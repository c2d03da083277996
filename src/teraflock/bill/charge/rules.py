"""Turns intervals into charges. Pure.

Invariants:
- an amount is rounded down once, counted from the start of its interval, for each resource. So the slices of an
  interval have the same sum wherever they are cut, and no slice is negative;
- time is counted in microseconds, a month has 730 hours, a GB has 2**30 bytes. Nothing is rounded in between;
- a slice is within one day (UTC), one period of the price book, one step of the long-term discount and one term of a
  purchase. So its line on the bill has one price;
- the past of an interval does not depend on its future. What was booked while it was open stays right, unless the
  tenant turns out to have stopped earlier (`booking`).
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import DAY_US, SECOND_US
from teraflock.base.money import HOURS_PER_MONTH
from teraflock.base.quantities import GIB
from teraflock.bill.charge.model import Amounts, Charge, ChargeSlice, Covered, Subject
from teraflock.bill.price.model import (
    BASIS,
    BID,
    Period,
    PriceBook,
    PricedPeriod,
    PricePlace,
    Units,
    list_mode,
)
from teraflock.meter.model import Holding, Interval

MONTH_US: Final = HOURS_PER_MONTH * 3600 * SECOND_US
_EACH: Final = MONTH_US * BASIS
_GB: Final = _EACH * GIB
_SCALES: Final = (_EACH, _EACH, _GB)
"""Divisor of the exact sums of gpu, vcpu and ram. Disk and snapshot use that of ram."""
Five = tuple[int, int, int, int, int]
"""Of gpu, vcpu, ram, disk and snapshot."""
_NOTHING: Final[Five] = (0, 0, 0, 0, 0)
_EMPTY: Final = Amounts()


class Tariff:
    """The price book in one currency."""

    def __init__(self, book: PriceBook, currency: str) -> None:
        self.book = book
        self.currency = currency
        self._priced: dict[tuple[int, int], PricedPeriod] = {}
        self._found: PricedPeriod | None = None
        self._found_from_us = self._found_until_us = 0

    def at(self, us: int) -> PricedPeriod | None:
        """The prices at a time. The last result is cached, because most intervals of a turn ask for the same one."""
        if not self._found_from_us <= us < self._found_until_us:
            period = self.book.at(us)
            self._found = self.priced(period) if period else None
            self._found_from_us, self._found_until_us = us, self.book.until(us)
        return self._found

    def until(self, us: int) -> int:
        """The latest time at which these prices end."""
        self.at(us)
        return self._found_until_us

    def units(self, priced: PricedPeriod, held: Holding) -> Units:
        """The monthly prices of what is held, in its purchase mode."""
        place = PricePlace(held.host, held.region)
        if held.mode == BID:
            return priced.of_bid(held.size.gpu, place, held.card_micros_per_hour, self.book.currency)
        return priced.units(held.size.gpu, held.mode, place)

    def priced(self, period: Period) -> PricedPeriod:
        key = (period.version, period.from_us)
        known = self._priced.get(key)
        if known is None:
            known = self._priced[key] = PricedPeriod(period, self.currency)
        return known


def slices(
    interval: Interval, until_us: int, tariff: Tariff, covers: Sequence[Covered] = ()
) -> list[ChargeSlice]:
    """The cost of an interval up to `until_us`."""
    held, quantities = interval.held, _quantities(interval.held)
    gpu, mode, place = held.size.gpu, held.mode, PricePlace(held.host, held.region)
    exact = exact_listed = done = _NOTHING
    done_listed = 0
    made: list[ChargeSlice] = []
    for from_us, to_us in _stretches(interval, until_us, tariff, covers):
        priced = tariff.at(from_us)
        if priced is None:
            made.append(ChargeSlice(from_us, to_us, "", _EMPTY, 0, 0, 0, 0, ""))
            continue
        cover = cover_at(covers, from_us) if covers else None
        discount_bp = discount_at(interval, priced.period, from_us)
        added = listed = _cost(
            priced.units(gpu, list_mode(mode), place), quantities, BASIS * (to_us - from_us)
        )
        if cover is not None or discount_bp or mode != "on-demand":
            weight = (BASIS - discount_bp) * (to_us - from_us)
            added = _cost(tariff.units(priced, held), beyond_cover(held, cover), weight)
        exact, exact_listed = _sum(exact, added), _sum(exact_listed, listed)
        now = _floored(exact)
        now_listed = sum(now) if exact == exact_listed else sum(_floored(exact_listed))
        made.append(
            ChargeSlice(
                from_us, to_us, tariff.currency, Amounts(*_less(now, done)), now_listed - done_listed, 0,
                priced.period.version, discount_bp, cover.purchase_id if cover else "",
            )
        )  # fmt: skip
        done, done_listed = now, now_listed
    is_end = interval.ends_run and until_us == interval.until_us
    return _with_end(interval, made, tariff, covers) if is_end else made


def accrued(
    interval: Interval, from_us: int, until_us: int, tariff: Tariff, covers: Sequence[Covered] = ()
) -> int:
    """The sum of the slices between two of their borders, without its minimum charge. A page of thousands of open
    intervals needs it: the slices themselves take several times as long."""
    if until_us <= from_us:
        return 0
    until = _exact(interval, until_us, tariff, covers)
    before = _exact(interval, from_us, tariff, covers) if from_us > interval.from_us else _NOTHING
    return sum(_less(_floored(until), _floored(before)))


def _exact(interval: Interval, until_us: int, tariff: Tariff, covers: Sequence[Covered]) -> Five:
    """The cost up to a time, not divided yet."""
    held, exact = interval.held, _NOTHING
    for from_us, to_us in _stretches(interval, until_us, tariff, covers, by_day=False):
        priced = tariff.at(from_us)
        if priced is not None:
            cover = cover_at(covers, from_us) if covers else None
            weight = (BASIS - discount_at(interval, priced.period, from_us)) * (to_us - from_us)
            exact = _sum(exact, _cost(tariff.units(priced, held), beyond_cover(held, cover), weight))
    return exact


def booking(
    subject: Subject,
    standing: Sequence[Charge],
    due: Sequence[ChargeSlice],
    next_segment: int,
    *,
    kind: str = "usage",
) -> list[Charge]:
    """The charges that correct what is booked to what is due: first reversals, then what is missing."""
    if not standing:
        return [
            Charge(subject=subject, segment=segment, kind=kind, slice=each)
            for segment, each in enumerate(due, start=next_segment)
        ]
    wanted = set(due)
    kept = {charge.slice for charge in standing}
    made = [
        Charge(
            subject=charge.subject, segment=segment, kind="reversal", reverses=charge.segment,
            slice=replace(
                charge.slice, amounts=charge.slice.amounts.negated(), list_micros=-charge.slice.list_micros,
                egress_bytes=-charge.slice.egress_bytes,
            ),
        )
        for segment, charge in enumerate((c for c in standing if c.slice not in wanted), start=next_segment)
    ]  # fmt: skip
    missing = [each for each in due if each not in kept]
    return made + [
        Charge(subject=subject, segment=segment, kind=kind, slice=each)
        for segment, each in enumerate(missing, start=next_segment + len(made))
    ]


def standing(charges: Iterable[Charge]) -> list[Charge]:
    """Charges that were not reversed."""
    charges = list(charges)
    reversed_segments = {charge.reverses for charge in charges if charge.kind == "reversal"}
    return [each for each in charges if each.kind != "reversal" and each.segment not in reversed_segments]


def subject_of(interval: Interval) -> Subject:
    return Subject(
        id=interval.instance_id, generation=interval.generation, sequence=interval.sequence,
        project_id=interval.project_id, held=interval.held,
    )  # fmt: skip


def _stretches(
    interval: Interval, until_us: int, tariff: Tariff, covers: Sequence[Covered], *, by_day: bool = True
) -> Iterable[tuple[int, int]]:
    """The parts of an interval that have one price each. Amounts are sums of these, whatever the days."""
    from_us, book = interval.from_us, tariff.book
    if until_us <= from_us:
        return ()
    next_day_us = from_us - from_us % DAY_US + DAY_US
    is_long = interval.run_us is not None and until_us - interval.run_us > DAY_US
    is_one_day = until_us <= next_day_us or not by_day
    if is_one_day and not (covers or is_long) and until_us <= tariff.until(from_us):
        return ((from_us, until_us),)  # the usual case
    cuts = set(book.changes(from_us, until_us))
    if by_day:
        cuts.update(range(next_day_us, until_us, DAY_US))
    if covers:
        cuts.update(
            us for cover in covers for us in (cover.from_us, cover.until_us) if from_us < us < until_us
        )
    if is_long:
        cuts.update(_discount_cuts(interval, until_us, book))
    return pairwise([from_us, *sorted(cuts), until_us])


def _discount_cuts(interval: Interval, until_us: int, book: PriceBook) -> Iterable[int]:
    assert interval.run_us is not None
    starts = [interval.from_us, *book.changes(interval.from_us, until_us)]
    for period in (book.at(us) for us in starts):
        for days, _ in period.prices.long_term if period else ():
            us = interval.run_us + days * DAY_US
            if interval.from_us < us < until_us:
                yield us


def discount_at(interval: Interval, period: Period, at_us: int) -> int:
    if interval.run_us is None or interval.held.mode != "on-demand" or not period.prices.long_term:
        return 0
    days = (at_us - interval.run_us) // DAY_US
    if days < period.prices.long_term[0][0]:
        return 0
    return max(bp for after, bp in period.prices.long_term if after <= days)


def _quantities(held: Holding) -> Five:
    size = held.size
    return (size.gpus, size.vcpus, size.ram_bytes, size.disk_bytes, held.snapshots_bytes)


def cover_at(covers: Sequence[Covered], us: int) -> Covered | None:
    return next((cover for cover in covers if cover.from_us <= us < cover.until_us), None)


def beyond_cover(held: Holding, cover: Covered | None) -> Five:
    """What is held beyond what a purchase pays for."""
    if cover is None:
        return _quantities(held)
    size, paid = held.size, cover.size
    return (
        max(0, size.gpus - (paid.gpus if paid.gpu == size.gpu else 0)),
        max(0, size.vcpus - paid.vcpus),
        max(0, size.ram_bytes - paid.ram_bytes),
        max(0, size.disk_bytes - paid.disk_bytes),
        held.snapshots_bytes,
    )


def _cost(u: Units, q: Five, weight: int) -> Five:
    """Exact sums, not divided yet. Written out, because a million intervals pass through here."""
    return (
        u[0] * q[0] * weight, u[1] * q[1] * weight, u[2] * q[2] * weight, u[3] * q[3] * weight, u[4] * q[4] * weight,
    )  # fmt: skip


def _sum(a: Five, b: Five) -> Five:
    if a is _NOTHING:
        return b
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4])


def _less(a: Five, b: Five) -> Five:
    if b is _NOTHING:
        return a
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3], a[4] - b[4])


def _floored(exact: Five) -> Five:
    return (exact[0] // _EACH, exact[1] // _EACH, exact[2] // _GB, exact[3] // _GB, exact[4] // _GB)


def _with_end(
    interval: Interval, made: list[ChargeSlice], tariff: Tariff, covers: Sequence[Covered]
) -> list[ChargeSlice]:
    """Add the minimum charge of a short run to the last slice."""
    minimum = minimum_micros(interval, tariff, covers)
    if not minimum:
        return made
    if not made:  # the run ended when its last size began, so the prices before that apply
        period = tariff.book.at(interval.until_us - 1)
        version, currency = (period.version, tariff.currency) if period else (0, "")
        made = [ChargeSlice(interval.until_us, interval.until_us, currency, _EMPTY, 0, 0, version, 0, "")]
    last = made[-1]
    amounts = last.amounts._replace(minimum=minimum)
    ended = replace(last, amounts=amounts, list_micros=last.list_micros + minimum)
    return [*made[:-1], ended]


def minimum_micros(interval: Interval, tariff: Tariff, covers: Sequence[Covered]) -> int:
    """GPUs, vCPUs and RAM for the time that is missing to the minimum, at the prices when the run began."""
    run_us, held = interval.run_us, interval.held
    if run_us is None or interval.operator_fault or interval.until_us == run_us:
        return 0  # the last slice: the tenant asked to stop before the run began
    priced = tariff.at(run_us)
    if priced is None:
        return 0
    missing_us = priced.period.prices.minimum_seconds * SECOND_US - (interval.until_us - run_us)
    if missing_us <= 0:
        return 0
    units = tariff.units(priced, held)
    beyond = beyond_cover(held, cover_at(covers, run_us))
    return sum(
        units[index] * beyond[index] * BASIS * missing_us // _SCALES[index]
        for index in range(3)
        if beyond[index]
    )
