"""All SQL about guests that kept running while no server watched them."""

from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.instance.model import Instance
from teraflock.storage.database import Transaction


def note_ran_unwatched(tx: Transaction, instance: Instance, at: datetime, started_at: datetime) -> None:
    tx.run(
        "INSERT INTO ran_unwatched (instance_id, at_us, sequence, started_us) VALUES (:id, :at, :sequence, :started)"
        " ON CONFLICT (instance_id, at_us) DO UPDATE SET sequence = excluded.sequence,"
        " started_us = excluded.started_us",
        id=instance.id,
        at=microseconds(at),
        sequence=instance.sequence,
        started=microseconds(started_at),
    )
