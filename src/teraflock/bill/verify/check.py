"""Compares the books with the values computed from the events. Reports every difference and changes nothing."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec

from teraflock.base.clock import DAY_US
from teraflock.bill.verify.amounts import (
    PARTS,
    At,
    Bought,
    Tariffs,
    accrued,
    covering,
    discount_bp,
    minimum,
)
from teraflock.bill.verify.row import Named, Said
from teraflock.bill.verify.timeline import HELD_NAMES, Span, spans, told

SHAPE = ("gpu", "gpus", "vcpus", "ram_bytes", "disk_bytes")
AMOUNTS = (*PARTS, "egress", "minimum", "fee")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    where: str
    """The table, and the row or subject in it."""
    what: str


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The values that all checks need."""

    tariffs: Tariffs
    currencies: dict[str, str]
    bought: dict[str, list[Bought]]
    """Prepaid periods by instance."""
    booked_until_us: int
    intervals_charged: int

    def currency(self, project_id: str) -> str:
        return self.currencies.get(project_id, self.tariffs.book.currency)


def check_instance(
    instance_id: str,
    events: Sequence[Said],
    taken: int,
    intervals: Sequence[Named],
    charges: Sequence[Named],
    known: Known,
) -> Iterator[Fault]:
    changes = told(events)
    if taken > len(changes):
        yield Fault(
            where=f"meter_instance {instance_id}",
            what=f"has {taken} changes, but the events have {len(changes)}",
        )
    last, written = spans(changes[:taken])
    yield from _check_intervals(instance_id, intervals, written)
    numbers = {(row["sequence"], row["revision"]): row["number"] for row in intervals}
    by_sequence: dict[int, list[Named]] = {}
    for row in charges:
        by_sequence.setdefault(row["sequence"], []).append(row)
    for span in last:
        own = by_sequence.pop(span.sequence, [])
        known_to_biller = [
            each
            for each in written
            if each.sequence == span.sequence
            and 0 < numbers.get((each.sequence, each.revision), 0) <= known.intervals_charged
        ]  # there may be a later revision that the biller has not processed yet
        as_charged = known_to_biller[-1] if known_to_biller else span
        yield from _check_charges(instance_id, as_charged, own, known, is_charged=bool(known_to_biller))
    for sequence in by_sequence:
        yield Fault(where=f"charge {instance_id} {sequence}", what="there is no usage for it")


def _check_intervals(instance_id: str, rows: Sequence[Named], written: Sequence[Span]) -> Iterator[Fault]:
    expected = {(span.sequence, span.revision): span for span in written}
    for row in rows:
        where = f"meter_interval {row['number']}"
        span = expected.pop((row["sequence"], row["revision"]), None)
        if span is None:
            yield Fault(where=where, what="no event of the instance explains it")
            continue
        for name in ("generation", "project_id", "from_us", "until_us", "run_us"):
            if row[name] != getattr(span, name):
                yield Fault(where=where, what=f"{name} is {row[name]}, not {getattr(span, name)}")
        for name in ("ends_run", "operator_fault"):
            if row[name] != int(getattr(span, name)):
                yield Fault(where=where, what=f"{name} is {row[name]}")
        yield from _check_held(where, row, span)
    for sequence, revision in expected:
        yield Fault(where=f"meter_interval {instance_id} {sequence}.{revision}", what="is missing")


def _check_held(where: str, row: Named, span: Span) -> Iterator[Fault]:
    for name, value in zip(HELD_NAMES, span.held, strict=True):
        if row[name] != value:
            yield Fault(where=where, what=f"{name} is {row[name]!r}, not {value!r}")


def _check_charges(
    instance_id: str, span: Span, rows: Sequence[Named], known: Known, *, is_charged: bool
) -> Iterator[Fault]:
    bought = known.bought.get(instance_id, [])
    for row in rows:
        where = f"charge {row['number']}"
        yield from _check_held(where, row, span)
        if (row["generation"], row["project_id"]) != (span.generation, span.project_id):
            yield Fault(where=where, what="has the wrong generation or project")
        if row["kind"] not in ("usage", "reversal"):
            yield Fault(where=where, what=f"has an unexpected kind: {row['kind']}")
    yield from check_reversals(rows)
    standing = sorted(_standing(rows), key=lambda row: (row["from_us"], row["until_us"]))
    yield from _check_tiling(instance_id, span, standing, known, is_charged=is_charged)
    if not standing:
        return
    edges = {us for row in standing for us in (row["from_us"], row["until_us"])}
    inside = {us for us in edges if us >= span.from_us}
    if not inside:
        return  # all charges are before the span: already reported as a wrong start
    currency = known.currency(span.project_id)
    costs = accrued(span, inside, known.tariffs, currency, bought)
    for row in standing:
        ends = is_charged and row is standing[-1]
        if row["from_us"] in costs and row["until_us"] in costs:
            yield from _check_charge(row, span, costs, known, bought, ends=ends)


def check_reversals(rows: Sequence[Named]) -> Iterator[Fault]:
    """Segment numbers have no gaps, and a reversal cancels exactly one active charge."""
    by_segment = {row["segment"]: row for row in rows}
    if sorted(by_segment) != list(range(len(rows))):
        where = f"charge {rows[0]['subject']} {rows[0]['sequence']}"
        yield Fault(where=where, what=f"segments are {sorted(by_segment)}")
    taken_back: set[int] = set()
    for row in rows:
        if row["kind"] != "reversal":
            if row["reverses"] != -1:
                yield Fault(
                    where=f"charge {row['number']}", what="names a charge to reverse, but is not a reversal"
                )
            continue
        other = by_segment.get(row["reverses"])
        if other is None or other["segment"] >= row["segment"] or other["kind"] == "reversal":
            yield Fault(where=f"charge {row['number']}", what="reverses a charge that does not exist")
        elif row["reverses"] in taken_back:
            yield Fault(where=f"charge {row['number']}", what="reverses a charge that was already reversed")
        elif not _is_negative(row, other):
            yield Fault(
                where=f"charge {row['number']}", what=f"is not the exact negative of charge {other['number']}"
            )
        taken_back.add(row["reverses"])


_SAME = ("from_us", "until_us", "month", "currency", "version", "discount_bp", "purchase_id")


def _is_negative(row: Named, other: Named) -> bool:
    names = [*(f"{part}_micros" for part in AMOUNTS), "micros", "list_micros", "egress_bytes"]
    return all(row[name] == -other[name] for name in names) and all(
        row[name] == other[name] for name in _SAME
    )


def _standing(rows: Sequence[Named]) -> list[Named]:
    taken_back = {row["reverses"] for row in rows if row["kind"] == "reversal"}
    return [row for row in rows if row["kind"] != "reversal" and row["segment"] not in taken_back]


def _check_tiling(
    instance_id: str, span: Span, standing: Sequence[Named], known: Known, *, is_charged: bool
) -> Iterator[Fault]:
    """The active charges cover the span from its start, without gap or overlap, as far as required."""
    where = f"charge {instance_id} {span.sequence}"
    for before, after in pairwise(standing):
        if before["until_us"] != after["from_us"]:
            yield Fault(
                where=f"charge {after['number']}", what="does not start where the previous charge ends"
            )
    begun_us = standing[0]["from_us"] if standing else span.from_us
    done_us = standing[-1]["until_us"] if standing else span.from_us
    if begun_us != span.from_us:
        yield Fault(where=where, what=f"starts at {begun_us}, must start at {span.from_us}")
    if is_charged and done_us != span.until_us:
        yield Fault(where=where, what=f"is charged until {done_us}, must be charged until {span.until_us}")
    if not is_charged and standing and (done_us > known.booked_until_us or done_us % DAY_US):
        yield Fault(where=where, what=f"is charged until {done_us}, after the last closed day")


def _check_charge(
    row: Named, span: Span, costs: dict[int, At], known: Known, bought: Sequence[Bought], *, ends: bool
) -> Iterator[Fault]:
    where, from_us, until_us = f"charge {row['number']}", row["from_us"], row["until_us"]
    before, after = costs[from_us], costs[until_us]
    priced_us = from_us if until_us > from_us else from_us - 1
    period = known.tariffs.book.at(priced_us)
    currency = known.currency(span.project_id)
    parts = zip(PARTS, before.parts, after.parts, strict=True)
    expected: Named = {f"{part}_micros": b - a for part, a, b in parts}
    over = minimum(span, known.tariffs, currency, bought) if ends else 0
    cover = covering(bought, from_us) if until_us > from_us else None
    expected.update(egress_micros=0, minimum_micros=over, fee_micros=0)
    expected.update(micros=sum(expected.values()), list_micros=after.listed - before.listed + over)
    expected.update(
        kind="usage", month=month_of(from_us), currency=currency if period else "",
        version=period.version if period else 0, egress_bytes=0,
        discount_bp=discount_bp(span, period, from_us) if period and until_us > from_us else 0,
        purchase_id=cover.purchase_id if cover and period else "",
    )  # fmt: skip
    for name, value in expected.items():
        if row[name] != value:
            yield Fault(where=where, what=f"{name} is {row[name]!r}, must be {value!r}")


def check_purchase(
    purchase_id: str,
    events: Sequence[Said],
    expected: Sequence[Said],
    terms: Sequence[Named],
    charges: Sequence[Named],
) -> Iterator[Fault]:
    for index in range(max(len(expected), len(terms))):
        where = f"purchase_term {purchase_id} {index}"
        if index >= len(expected) or index >= len(terms):
            yield Fault(where=where, what="is missing" if index >= len(terms) else "no event explains it")
            continue
        for name, value in expected[index].items():
            if terms[index][name] != value:
                yield Fault(where=where, what=f"{name} is {terms[index][name]!r}, must be {value!r}")
    rows = {row["sequence"]: row for row in charges}
    for term in expected:
        row = rows.pop(term["sequence"], None)
        if row is not None:
            said = next(each for each in events if each["term"] == term["sequence"])
            named = {name: said[name] for name in ("mode", "host", "region", "name", "member", "labels")}
            yield from _check_fee(row, term, named, purchase_id, said["project_id"])
        elif term["fee_micros"]:
            yield Fault(where=f"charge {purchase_id} {term['sequence']}", what="the fee was never charged")
    for row in rows.values():
        yield Fault(where=f"charge {row['number']}", what="no term of the purchase explains it")


def _check_fee(row: Named, term: Said, said: Said, purchase_id: str, project_id: str) -> Iterator[Fault]:
    expected: Named = {f"{part}_micros": 0 for part in AMOUNTS}
    expected.update((name, term[name]) for name in ("from_us", "until_us", "currency", *SHAPE))
    expected.update(said, snapshots_bytes=0, card_micros_per_hour=0)
    fee = term["fee_micros"]
    expected.update(
        micros=fee, fee_micros=fee, list_micros=fee, kind="fee" if fee > 0 else "refund",
        month=month_of(term["from_us"]), purchase_id=purchase_id, project_id=project_id, generation=0, segment=0,
        reverses=-1, version=0, discount_bp=0, egress_bytes=0,
    )  # fmt: skip
    for name, value in expected.items():
        if row[name] != value:
            yield Fault(where=f"charge {row['number']}", what=f"{name} is {row[name]!r}, must be {value!r}")


def month_of(us: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).strftime("%Y-%m")
