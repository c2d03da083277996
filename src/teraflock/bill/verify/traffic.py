"""Computes what traffic must cost, from counter readings and the events of their instances.

It implements the rules in the heads of meter/reading/model.py and bill/charge/traffic.py a second time: it lists all
expected charges and removes those that exist.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from teraflock.base.clock import DAY_US
from teraflock.bill.verify.amounts import GB
from teraflock.bill.verify.check import Fault, Known, check_reversals, month_of
from teraflock.bill.verify.row import Named, Said
from teraflock.bill.verify.timeline import HELD_NAMES, Span

NOT_COST = ("gpu", "vcpu", "ram", "disk", "snapshot", "minimum", "fee")


def check_traffic(
    instance_id: str,
    events: Sequence[Said],
    readings: Sequence[Named],
    charges: Sequence[Named],
    known: Known,
) -> Iterator[Fault]:
    """`charges` has only charges for traffic."""
    changes = {said["sequence"]: said for said in events if "sequence" in said}
    faults = [*_check_readings(instance_id, readings, changes)]
    yield from faults
    if faults:
        return  # the expected charges cannot be computed from these
    for _, rows in groupby(charges, lambda row: row["sequence"]):
        yield from check_reversals(list(rows))
    counted = [row for row in readings if row["at_us"] < known.booked_until_us]
    missing = Counter(tuple(line.items()) for line in _lines(counted, changes, known))
    for row in charges:
        line = tuple((name, row[name]) for name in _names())
        if not missing[line]:
            yield Fault(where=f"charge {row['number']}", what="no traffic reading explains it")
        missing[line] -= 1
    for line in (+missing).elements():
        said = dict(line)
        what = f"the charge for {said['egress_bytes']} sent bytes is missing"
        yield Fault(where=f"charge {instance_id} {said['sequence']}", what=what)


def _check_readings(
    instance_id: str, readings: Sequence[Named], changes: Mapping[int, Said]
) -> Iterator[Fault]:
    """Each reading continues from the highest one before it in its epoch, and names an existing change."""
    highest: dict[str, int] = {}
    for row in sorted(readings, key=lambda each: int(each["number"])):
        where, before = f"meter_reading {row['number']}", highest.get(row["epoch"], 0)
        if row["bytes_before"] != before or row["bytes"] <= before:
            yield Fault(where=where, what=f"counts from {row['bytes_before']}, must count from {before}")
        if row["sequence"] not in changes:
            yield Fault(where=where, what=f"{instance_id} has no change {row['sequence']}")
        highest[row["epoch"]] = row["bytes"]


def _lines(readings: Sequence[Named], changes: Mapping[int, Said], known: Known) -> Iterator[Named]:
    """One charge for each day, price and sender."""
    book = known.tariffs.book
    sums: dict[tuple[Any, ...], int] = {}
    for row in readings:
        day_us = row["at_us"] - row["at_us"] % DAY_US
        edges = [day_us, *book.changes(day_us, day_us + DAY_US), day_us + DAY_US]
        from_us = max(us for us in edges if us <= row["at_us"])
        until_us = min(us for us in edges if us > row["at_us"])
        said = changes[row["sequence"]]
        key = (from_us, until_us, said["project_id"], _sender(said))
        sums[key] = sums.get(key, 0) + row["bytes"] - row["bytes_before"]
    for (from_us, until_us, project_id, held), sent in sums.items():
        span = Span(sequence=0, generation=0, project_id=project_id, held=held, from_us=from_us, run_us=None)
        yield _line(span, until_us, sent, known)


def _sender(said: Said) -> tuple[Any, ...]:
    words = {
        "gpu": said.get("gpu", ""), "mode": said.get("mode", "on-demand"), "host": said.get("host", ""),
        "region": said.get("region", ""), "name": said.get("name", ""), "member": said.get("member", ""),
        "labels": said.get("labels") or "{}",
    }  # fmt: skip
    return tuple(words.get(name, 0) for name in HELD_NAMES)


def _line(span: Span, until_us: int, sent: int, known: Known) -> Named:
    """All columns of a charge except its numbers and its booking time."""
    period, currency, micros = known.tariffs.book.at(span.from_us), known.currency(span.project_id), 0
    if period is not None:
        micros = sent * known.tariffs.unit(period, currency, span, span.says("mode"), "egress") // GB
    made: Named = {
        "sequence": -(span.from_us // DAY_US), "generation": 0, "kind": "usage", "reverses": -1,
        "project_id": span.project_id, "month": month_of(span.from_us), "from_us": span.from_us,
        "until_us": until_us, "currency": currency if period else "", "micros": micros, "egress_micros": micros,
        "list_micros": micros, "egress_bytes": sent, "version": period.version if period else 0, "discount_bp": 0,
        "purchase_id": "",
    }  # fmt: skip
    made.update({f"{part}_micros": 0 for part in NOT_COST})
    made.update(zip(HELD_NAMES, span.held, strict=True))
    return made


def _names() -> tuple[str, ...]:
    """The columns of a line, in its order."""
    words = (
        "sequence", "generation", "kind", "reverses", "project_id", "month", "from_us", "until_us", "currency",
        "micros", "egress_micros", "list_micros", "egress_bytes", "version", "discount_bp", "purchase_id",
    )  # fmt: skip
    return (*words, *(f"{part}_micros" for part in NOT_COST), *HELD_NAMES)
