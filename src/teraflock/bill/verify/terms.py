"""Computes what purchases must cost and cover, from their events."""

import calendar
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from teraflock.bill.price.model import Period, PriceBook, PricedPeriod, PricePlace
from teraflock.bill.verify.amounts import GB, Bought
from teraflock.bill.verify.check import SHAPE
from teraflock.bill.verify.row import Said

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expected_terms(events: Sequence[Said], book: PriceBook) -> list[Said]:
    """The expected terms in order: from their events, with month and fee computed again."""
    terms: list[Said] = []
    for said in sorted(events, key=lambda each: int(each["term"])):
        term = {name: said[name] for name in ("from_us", "until_us", "currency", *SHAPE)}
        term.update(
            kind=said["kind"].removeprefix("purchase."), sequence=said["term"], instance_id=said["instance"]
        )
        terms.append({**term, **_cost(said, term, terms, book)})
    return terms


def paid_for(purchase_id: str, terms: Sequence[Said]) -> list[Bought]:
    """The periods that terms cover, each until the next starts."""
    made = []
    for index, term in enumerate(terms):
        until_us = min([term["until_us"], *(later["from_us"] for later in terms[index + 1 :])])
        if term["kind"] != "ended" and until_us > term["from_us"]:
            shape = {name: term[name] for name in SHAPE}
            made.append(
                Bought(purchase_id=purchase_id, from_us=term["from_us"], until_us=until_us, shape=shape)
            )
    return made


def _cost(said: Said, term: Said, before: Sequence[Said], book: PriceBook) -> Said:
    period, kind = _period(said, term, book), term["kind"]
    months = 12 * said["years"] if said["upfront"] else 1
    if kind == "ended":
        last, whole = before[-1], [each for each in before if each["kind"] != "upgraded"][-1]
        left = Fraction(max(0, last["until_us"] - term["from_us"]), last["until_us"] - whole["from_us"])
        back = Fraction(period.prices.refund_bp if period else 0, 10_000)
        return {"month_micros": 0, "fee_micros": -round(last["month_micros"] * left * back)}
    assert period is not None
    month = before[-1]["month_micros"] if kind == "continued" else _month(said, term, period)
    if kind == "upgraded":
        last, whole = before[-1], [each for each in before if each["kind"] != "upgraded"][-1]
        left = Fraction(last["until_us"] - term["from_us"], last["until_us"] - whole["from_us"])
        more = max(0, month - last["month_micros"])
        return {"month_micros": last["month_micros"] + more, "fee_micros": round(more * months * left)}
    fee = month
    if said["upfront"]:
        fee = round(Fraction(month * months * (10_000 - period.prices.upfront_bp), 10_000))
    begun = sum(each["kind"] != "upgraded" for each in before) + 1
    first_us = before[0]["from_us"] if before else term["from_us"]
    return {"month_micros": month, "fee_micros": fee, "until_us": months_on(first_us, begun * months)}


def _period(said: Said, term: Said, book: PriceBook) -> Period | None:
    """The price period that applied when the term started. A book accepted at that exact time may apply or not."""
    counts, used = book.at(term["from_us"]), book.of(said["version"], term["from_us"])
    return used if counts is None or counts.from_us == term["from_us"] else counts


def _month(said: Said, term: Said, period: Period) -> int:
    place = PricePlace(said["host"], said["region"])
    units = PricedPeriod(period, term["currency"]).units(term["gpu"], "monthly", place)
    whole = Fraction(units.gpu * term["gpus"] + units.vcpu * term["vcpus"])
    whole += Fraction(units.ram * term["ram_bytes"] + units.disk * term["disk_bytes"], GB)
    return round(whole * (1 - Fraction(period.prices.reserved_bp.get(said["years"], 0), 10_000)))


def months_on(from_us: int, months: int) -> int:
    """The same day some months later, or the last day of a shorter month."""
    at = _EPOCH + timedelta(microseconds=from_us)
    year, month = at.year + (at.month - 1 + months) // 12, (at.month - 1 + months) % 12 + 1
    day = min(at.day, calendar.monthrange(year, month)[1])
    return (at.replace(year=year, month=month, day=day) - _EPOCH) // timedelta(microseconds=1)
