"""All SQL about guests that kept running while no server watched them, and about alerts that were sent."""

from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.clock import microseconds
from teraflock.base.ids import EventId
from teraflock.instance.model import Instance
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, put_row


def note_ran_unwatched(tx: Transaction, instance: Instance, at: datetime, started_at: datetime) -> None:
    put_row(
        tx,
        "ran_unwatched",
        "instance_id at_us",
        instance_id=instance.id,
        at_us=microseconds(at),
        sequence=instance.sequence,
        started_us=microseconds(started_at),
    )


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How far alerts were sent to the webhook."""

    event_id: EventId
    """The last event that was sent, given up, or is not an alert."""
    attempts: int
    """To send the next alert."""
    next_at: datetime


_DELIVERY: Final = Table("alert_delivery", Delivery)


def delivery(tx: Transaction) -> Delivery | None:
    return _DELIVERY.one(tx, "WHERE number = 1")


def put_delivery(tx: Transaction, delivery: Delivery) -> None:
    tx.run(
        f"{_DELIVERY.insert_with('number')} ON CONFLICT (number) DO UPDATE SET event_id = excluded.event_id,"
        " attempts = excluded.attempts, next_at_us = excluded.next_at_us",
        number=1,
        **dict(zip(_DELIVERY.columns, _DELIVERY.row(delivery), strict=True)),
    )
