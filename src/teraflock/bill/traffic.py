"""Traffic at the biller's desk: which days of which instances lack charges, and what those are."""

from collections.abc import Iterator
from itertools import groupby

from teraflock.bill import store
from teraflock.bill.charge import store as charge_store
from teraflock.bill.charge.model import Charge
from teraflock.bill.charge.rules import standing
from teraflock.bill.charge.traffic import sequence_of, traffic_booking
from teraflock.bill.desk import Desk
from teraflock.bill.price.model import FOREVER_US
from teraflock.meter import store as meter_store
from teraflock.meter.reading import store as reading_store
from teraflock.storage.database import Transaction


def traffic_due(
    tx: Transaction,
    desk: Desk,
    *,
    until_us: int = FOREVER_US,
    project_id: str | None = None,
    instance_id: str | None = None,
) -> Iterator[Charge]:
    """The charges missing for what was sent up to a time, the end of a day: of all projects, or one, or an instance."""
    cursor = store.cursor(tx)
    days = reading_store.days_touched(
        tx, closed_us=cursor.booked_until_us, seen=cursor.readings, until_us=until_us, project_id=project_id
    )
    for id, own in groupby(days, lambda pair: pair[0]):
        if instance_id in (None, id):
            yield from _of_instance(tx, desk, id, [day for _, day in own])


def _of_instance(tx: Transaction, desk: Desk, instance_id: str, days: list[int]) -> Iterator[Charge]:
    changes = {change.sequence: change for change in meter_store.changes_of(tx, instance_id, 0)}
    for day in days:
        readings = reading_store.of_day(tx, instance_id, day)
        made = charge_store.charges_of(tx, instance_id, sequence_of(day))
        tariff = desk.tariff(changes[readings[0].sequence].project_id)
        yield from traffic_booking(day, readings, changes, standing(made), len(made), tariff)
