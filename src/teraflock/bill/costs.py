"""Current costs: per hour and so far, including usage that is not booked yet."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from teraflock.base.clock import DAY_US
from teraflock.base.money import HOURS_PER_MONTH
from teraflock.base.quantities import GIB
from teraflock.bill import store as bill_store
from teraflock.bill.charge import store as charge_store
from teraflock.bill.charge.model import Charge
from teraflock.bill.charge.rules import accrued, beyond_cover, cover_at, discount_at, minimum_micros, slices
from teraflock.bill.desk import FROM_ANY_DAY_US, Desk, interval_of
from teraflock.bill.price.model import BASIS
from teraflock.bill.times import month_bounds
from teraflock.bill.traffic import traffic_due
from teraflock.meter.ahead import Ahead, ahead
from teraflock.meter.model import Holding, Interval, Meter
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId

_HOUR_PARTS: Final = HOURS_PER_MONTH * BASIS


class InstanceCost(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance costs its tenant."""

    currency: str
    micros_per_hour: int
    """At the current size and prices, without what is paid by the month."""
    micros: int
    """So far."""
    is_priced: bool
    """Whether the price book has a price for its GPU model."""
    paid_until_us: int | None = None
    """The end of the time that is paid ahead. None: it is charged by the second."""


def costs_of(
    tx: Transaction, desk: Desk, project_id: ProjectId, instance_ids: Iterable[str], now_us: int
) -> dict[str, InstanceCost]:
    """Costs of instances of a project. Includes all committed changes, even if the meter has not read them yet."""
    ids = tuple(instance_ids)
    if not ids:
        return {}
    metered = ahead(tx, project_id, bill_store.cursor(tx).intervals, ids)
    micros = charge_store.micros_of(tx, ids, desk.currency(project_id))
    for charge in (*closed_to_come(desk, metered), *traffic_due(tx, desk, only=ids)):
        micros[charge.subject.id] = micros.get(charge.subject.id, 0) + charge.micros
    opened = {meter.instance_id: interval_of(meter) for meter in metered.open}
    closed_us = bill_store.cursor(tx).booked_until_us
    for id, held in opened.items():
        booked_us = charge_store.booked_until(tx, id, held.sequence) if held.from_us < closed_us else 0
        micros[id] = micros.get(id, 0) + unbooked(desk, held, booked_us, now_us)
    return {id: _cost(desk, project_id, id, opened.get(id), micros.get(id, 0), now_us) for id in ids}


def _cost(
    desk: Desk, project_id: ProjectId, id: str, held: Interval | None, micros: int, now_us: int
) -> InstanceCost:
    cover = cover_at(desk.covers(id), now_us)
    return InstanceCost(
        currency=desk.currency(project_id),
        micros_per_hour=hourly(desk, held, now_us) if held else 0,
        micros=micros,
        is_priced=held is None or has_price(desk, held.held, project_id, now_us),
        paid_until_us=cover.until_us if cover else None,
    )


def unbooked(desk: Desk, interval: Interval, booked_us: int, now_us: int, month: str = "") -> int:
    """What an open interval costs beyond what is booked up to a time, in all months or one."""
    if now_us <= interval.from_us:
        return 0
    tariff, covers = desk.tariff(interval.project_id), desk.covers(interval.instance_id)
    has_minimum = interval.ends_run and minimum_micros(interval, tariff, covers)
    if not has_minimum and not booked_us % DAY_US:  # then all times are borders of slices
        begin_us, end_us = month_bounds(month) if month else (0, now_us)
        return accrued(interval, max(booked_us, begin_us), min(now_us, end_us), tariff, covers)
    return sum(
        sum(each.amounts)
        for each in slices(interval, now_us, tariff, covers)
        if each.from_us >= booked_us and month in ("", charge_store.month_of(each.from_us))
    )


def hourly(desk: Desk, interval: Interval, now_us: int) -> int:
    """The cost of another hour, rounded down as the charge will be."""
    tariff, held = desk.tariff(interval.project_id), interval.held
    priced = tariff.at(now_us)
    if priced is None:
        return 0
    units = tariff.units(priced, held)
    covers = desk.covers(interval.instance_id)
    beyond = beyond_cover(held, cover_at(covers, now_us) if covers else None)
    kept = BASIS - discount_at(interval, priced.period, now_us)
    each = units.gpu * beyond[0] + units.vcpu * beyond[1]
    by_gb = units.ram * beyond[2] + units.disk * beyond[3] + units.snapshot * beyond[4]
    return (each * GIB + by_gb) * kept // (GIB * _HOUR_PARTS)


def has_price(desk: Desk, held: Holding, project_id: ProjectId, now_us: int) -> bool:
    period = desk.book.at(now_us)
    if period is None:
        return False
    tariff = desk.tariff(project_id)
    units = tariff.units(tariff.priced(period), held)
    return not held.size.gpus or units.gpu > 0


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a project has spent, including usage that is not booked yet."""

    micros: int
    committed_micros: int
    """The amount if everything that runs stopped now: short runs are charged for the minimum."""
    micros_per_hour: int
    """The cost of another hour at the current size and prices."""
    intervals: int = 0
    """How many open intervals were added up."""


def month_so_far(tx: Transaction, desk: Desk, project_id: ProjectId, month: str, now_us: int) -> Spent:
    """What a project has spent in a month. Includes all committed changes, even if the meter has not read them yet."""
    booked = charge_store.spent(tx, project_id, month).get(desk.currency(project_id), 0)
    pending = not_booked(tx, desk, project_id, now_us, month)
    return Spent(
        micros=booked + pending.micros,
        committed_micros=booked + pending.committed_micros,
        micros_per_hour=pending.micros_per_hour,
    )


def not_booked(
    tx: Transaction, desk: Desk, project_id: ProjectId, now_us: int, month: str = "", *, minimums: bool = True
) -> Spent:
    """Usage that is not charged yet, in all months or one. Without `minimums`, nothing is committed beyond it: that
    takes half of the time."""
    metered = ahead(tx, project_id, bill_store.cursor(tx).intervals)
    due = [*closed_to_come(desk, metered), *traffic_due(tx, desk, project_id=project_id)]
    micros = sum(
        charge.micros for charge in due if month in ("", charge_store.month_of(charge.slice.from_us))
    )
    committed, rate = micros, 0
    for interval, booked_us in open_intervals(tx, project_id, metered.open):
        each = unbooked(desk, interval, booked_us, now_us, month)
        micros += each
        committed += unbooked(desk, _ended(interval, now_us), booked_us, now_us, month) if minimums else each
        rate += hourly(desk, interval, now_us)
    return Spent(micros=micros, committed_micros=committed, micros_per_hour=rate, intervals=len(metered.open))


def open_intervals(
    tx: Transaction, project_id: ProjectId, meters: Iterable[Meter]
) -> Iterator[tuple[Interval, int]]:
    """Open intervals of a project, each with the time up to which it is charged."""
    closed_us = bill_store.cursor(tx).booked_until_us
    booked = charge_store.open_booked_until(tx, project_id, closed_us)
    for interval in map(interval_of, meters):
        yield interval, booked.get((interval.instance_id, interval.sequence), 0)


def _ended(interval: Interval, now_us: int) -> Interval:
    return msgspec.structs.replace(
        interval, until_us=max(now_us, interval.from_us), ends_run=interval.run_us is not None
    )


def charges_to_come(tx: Transaction, desk: Desk, project_id: ProjectId, now_us: int) -> list[Charge]:
    """The charges and reversals that would be booked if everything stopped now, without minimum charges."""
    metered = ahead(tx, project_id, bill_store.cursor(tx).intervals)
    found = closed_to_come(desk, metered)
    for interval in map(interval_of, metered.open):
        if now_us > interval.from_us:
            found += desk.booking(interval, now_us, FROM_ANY_DAY_US)
    return found + list(traffic_due(tx, desk, project_id=project_id))


def closed_to_come(desk: Desk, metered: Ahead) -> list[Charge]:
    """The charges of intervals that ended and are not booked."""
    return [
        charge
        for interval in metered.closed
        for charge in desk.booking(interval, interval.until_us, FROM_ANY_DAY_US)
    ]


def days_to_come(desk: Desk, interval: Interval, booked_us: int, now_us: int) -> Iterator[tuple[int, int]]:
    """The days of an open interval that are not booked, as far as prices apply to them, each with its amount."""
    tariff, covers = desk.tariff(interval.project_id), desk.covers(interval.instance_id)
    from_us = max(booked_us, interval.from_us)
    while from_us < now_us:
        day = from_us // DAY_US
        until_us = min((day + 1) * DAY_US, now_us)
        if tariff.at(from_us) or tariff.until(from_us) < until_us:
            yield day, accrued(interval, from_us, until_us, tariff, covers)
        from_us = until_us
