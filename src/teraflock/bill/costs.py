"""Current costs: per hour and so far, including usage that is not booked yet."""

from collections.abc import Iterable
from typing import Final

import msgspec

from teraflock.base.money import HOURS_PER_MONTH
from teraflock.base.quantities import GIB
from teraflock.bill import store as bill_store
from teraflock.bill.charge import store as charge_store
from teraflock.bill.charge.model import Charge
from teraflock.bill.charge.rules import beyond_cover, cover_at, discount_at, slices
from teraflock.bill.desk import FROM_ANY_DAY_US, Desk, interval_of
from teraflock.bill.price.model import BASIS
from teraflock.bill.traffic import traffic_due
from teraflock.meter.ahead import ahead
from teraflock.meter.model import Holding, Interval
from teraflock.storage.database import Transaction

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
    tx: Transaction, desk: Desk, project_id: str, instance_ids: Iterable[str], now_us: int
) -> dict[str, InstanceCost]:
    """Costs of instances of a project. Includes all committed changes, even if the meter has not read them yet."""
    ids = tuple(instance_ids)
    metered = ahead(tx, project_id, bill_store.cursor(tx).intervals, ids)
    opened = {meter.instance_id: interval_of(meter) for meter in metered.open}
    closed: dict[str, int] = {}
    for interval in metered.closed:
        due = desk.booking(interval, interval.until_us, FROM_ANY_DAY_US)
        closed[interval.instance_id] = closed.get(interval.instance_id, 0) + sum(each.micros for each in due)
    return {id: _cost(tx, desk, project_id, id, opened.get(id), closed.get(id, 0), now_us) for id in ids}


def _cost(
    tx: Transaction, desk: Desk, project_id: str, id: str, held: Interval | None, closed: int, now_us: int
) -> InstanceCost:
    currency = desk.currency(project_id)
    cover = cover_at(desk.covers(id), now_us)
    paid_until_us = cover.until_us if cover else None
    micros = charge_store.micros_of(tx, id).get(currency, 0) + closed
    micros += sum(charge.micros for charge in traffic_due(tx, desk, instance_id=id))
    if held is None:
        return InstanceCost(
            currency=currency, micros_per_hour=0, micros=micros, is_priced=True, paid_until_us=paid_until_us
        )
    return InstanceCost(
        currency=currency,
        micros_per_hour=hourly(desk, held, now_us),
        micros=micros + unbooked(tx, desk, held, now_us),
        is_priced=has_price(desk, held.held, project_id, now_us),
        paid_until_us=paid_until_us,
    )


def unbooked(tx: Transaction, desk: Desk, interval: Interval, now_us: int, month: str = "") -> int:
    """What an open interval costs beyond what is booked, in all months or one."""
    if now_us <= interval.from_us:
        return 0
    due = slices(interval, now_us, desk.tariff(interval.project_id), desk.covers(interval.instance_id))
    booked_us = charge_store.booked_until(tx, interval.instance_id, interval.sequence)
    return sum(
        sum(each.amounts)
        for each in due
        if each.from_us >= booked_us and month in ("", charge_store.month_of(each.from_us))
    )


def hourly(desk: Desk, interval: Interval, now_us: int) -> int:
    """The cost of another hour, rounded down as the charge will be."""
    tariff, held = desk.tariff(interval.project_id), interval.held
    period = desk.book.at(now_us)
    if period is None:
        return 0
    units = tariff.units(tariff.priced(period), held)
    beyond = beyond_cover(held, cover_at(desk.covers(interval.instance_id), now_us))
    kept = BASIS - discount_at(interval, period, now_us)
    each = units.gpu * beyond[0] + units.vcpu * beyond[1]
    by_gb = units.ram * beyond[2] + units.disk * beyond[3] + units.snapshot * beyond[4]
    return (each * GIB + by_gb) * kept // (GIB * _HOUR_PARTS)


def has_price(desk: Desk, held: Holding, project_id: str, now_us: int) -> bool:
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


def month_so_far(tx: Transaction, desk: Desk, project_id: str, month: str, now_us: int) -> Spent:
    """What a project has spent in a month. Includes all committed changes, even if the meter has not read them yet."""
    booked = charge_store.spent(tx, project_id, month).get(desk.currency(project_id), 0)
    pending = not_booked(tx, desk, project_id, now_us, month)
    return Spent(
        micros=booked + pending.micros,
        committed_micros=booked + pending.committed_micros,
        micros_per_hour=pending.micros_per_hour,
    )


def not_booked(
    tx: Transaction, desk: Desk, project_id: str, now_us: int, month: str = "", *, minimums: bool = True
) -> Spent:
    """Usage that is not charged yet, in all months or one. Without `minimums`, nothing is committed beyond it: that
    takes half of the time."""
    metered = ahead(tx, project_id, bill_store.cursor(tx).intervals)
    due = [
        charge
        for interval in metered.closed
        for charge in desk.booking(interval, interval.until_us, FROM_ANY_DAY_US)
    ]
    due += traffic_due(tx, desk, project_id=project_id)
    micros = sum(
        charge.micros for charge in due if month in ("", charge_store.month_of(charge.slice.from_us))
    )
    committed, rate = micros, 0
    for interval in map(interval_of, metered.open):
        each = unbooked(tx, desk, interval, now_us, month)
        micros += each
        committed += unbooked(tx, desk, _ended(interval, now_us), now_us, month) if minimums else each
        rate += hourly(desk, interval, now_us)
    return Spent(micros=micros, committed_micros=committed, micros_per_hour=rate)


def _ended(interval: Interval, now_us: int) -> Interval:
    return msgspec.structs.replace(
        interval, until_us=max(now_us, interval.from_us), ends_run=interval.run_us is not None
    )


def charges_to_come(tx: Transaction, desk: Desk, project_id: str, now_us: int) -> list[Charge]:
    """The charges and reversals that would be booked if everything stopped now, without minimum charges."""
    metered = ahead(tx, project_id, bill_store.cursor(tx).intervals)
    found = [
        charge
        for interval in metered.closed
        for charge in desk.booking(interval, interval.until_us, FROM_ANY_DAY_US)
    ]
    for interval in map(interval_of, metered.open):
        if now_us > interval.from_us:
            found += desk.booking(interval, now_us, FROM_ANY_DAY_US)
    return found + list(traffic_due(tx, desk, project_id=project_id))
