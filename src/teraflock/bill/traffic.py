"""Traffic that is not charged yet, by day and instance, and what it costs.

A day is closed only after its last reading, so it is charged once and never reversed.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from teraflock.bill import store
from teraflock.bill.charge.model import Charge
from teraflock.bill.charge.traffic import traffic_charges
from teraflock.bill.desk import Desk
from teraflock.bill.price.model import FOREVER_US
from teraflock.meter import store as meter_store
from teraflock.meter.reading import store as reading_store
from teraflock.storage.database import Transaction
from teraflock.tenant.model import NO_PROJECT, ProjectId


def traffic_due(
    tx: Transaction,
    desk: Desk,
    *,
    until_us: int = FOREVER_US,
    project_id: ProjectId = NO_PROJECT,
    only: Sequence[str] = (),
) -> Iterator[Charge]:
    """Charges for traffic since the last closed day, up to a time: of all projects, one project or some instances."""
    closed_us = store.cursor(tx).booked_until_us
    days = reading_store.days(tx, closed_us, until_us, project_id=project_id, only=only)
    for id, own in groupby(days, lambda pair: pair[0]):
        yield from _of_instance(tx, desk, id, [day for _, day in own])


def _of_instance(tx: Transaction, desk: Desk, instance_id: str, days: list[int]) -> Iterator[Charge]:
    changes = {change.sequence: change for change in meter_store.changes_of(tx, instance_id, 0)}
    for day in days:
        readings = reading_store.of_day(tx, instance_id, day)
        tariff = desk.tariff(changes[readings[0].sequence].project_id)
        yield from traffic_charges(day, readings, changes, tariff)
