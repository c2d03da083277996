"""Turns traffic into charges. Pure.

Invariants:
- the traffic of one instance in one day (UTC), from one place and at one price, is one line and rounded down once. So
  the charge does not depend on how often counters were read;
- a GB costs what it costs at the place it was sent from, at the time it was read. Purchases and discounts do not
  apply;
- lines of traffic are numbered by the day, below zero. Lines of intervals have the sequence of an event.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from teraflock.base.clock import DAY_US
from teraflock.base.quantities import GIB
from teraflock.base.size import Size
from teraflock.bill.charge.model import Amounts, Charge, ChargeSlice, Subject
from teraflock.bill.charge.rules import Tariff, booking
from teraflock.meter.model import Change, Holding
from teraflock.meter.reading.model import MeterReading
from teraflock.tenant.model import ProjectId


def sender(held: Holding) -> Holding:
    """The parts of a holding that traffic is grouped by."""
    return replace(held, size=Size(gpu=held.size.gpu), snapshots_bytes=0, card_micros_per_hour=0)


def traffic_charges(
    day: int, readings: Sequence[MeterReading], changes: Mapping[int, Change], tariff: Tariff
) -> list[Charge]:
    """The charges of one instance for one day, from all readings of that day and the changes that they name."""
    made: list[Charge] = []
    by_sender: dict[tuple[ProjectId, Holding], list[MeterReading]] = {}
    for reading in readings:
        change = changes[reading.sequence]
        by_sender.setdefault((change.project_id, sender(change.held)), []).append(reading)
    for (project_id, held), own in by_sender.items():
        subject = Subject(
            id=own[0].instance_id, generation=0, sequence=-day, project_id=project_id, held=held
        )
        made += booking(subject, (), traffic_slices(day, own, held, tariff), len(made))
    return made


def traffic_slices(
    day: int, readings: Iterable[MeterReading], held: Holding, tariff: Tariff
) -> list[ChargeSlice]:
    """One for each period of the price book with readings."""
    from_us, until_us = day * DAY_US, (day + 1) * DAY_US
    edges = [from_us, *tariff.book.changes(from_us, until_us), until_us]
    made = []
    for begin_us, end_us in pairwise(edges):
        sent = sum(each.sent_bytes for each in readings if begin_us <= each.at_us < end_us)
        if sent:
            made.append(_slice(begin_us, end_us, sent, held, tariff))
    return made


def _slice(from_us: int, until_us: int, sent_bytes: int, held: Holding, tariff: Tariff) -> ChargeSlice:
    period = tariff.book.at(from_us)
    if period is None:
        return ChargeSlice(from_us, until_us, "", Amounts(), 0, sent_bytes, 0, 0, "")
    unit = tariff.units(tariff.priced(period), held).egress
    micros = sent_bytes * unit // GIB
    amounts = Amounts(egress=micros)
    return ChargeSlice(from_us, until_us, tariff.currency, amounts, micros, sent_bytes, period.version, 0, "")
