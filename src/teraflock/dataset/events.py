"""Events of datasets. The meter reads them like the events of a stopped instance.

The size is in `snapshots_bytes`, and `mode` marks it as data, so that it has its own price.
"""

from collections.abc import Callable
from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.dataset.model import Dataset
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

RandomBytes = Callable[[int], bytes]


def record_ready(tx: Transaction, dataset: Dataset, now: datetime, random_bytes: RandomBytes) -> None:
    """Record that the dataset is complete. It is charged from now on."""
    record_event(tx, _event(dataset, "stopped", 1, now, random_bytes))


def record_deleted(tx: Transaction, dataset: Dataset, now: datetime, random_bytes: RandomBytes) -> None:
    """Record that the dataset is deleted. It is charged until now."""
    record_event(tx, _event(dataset, "deleting", 2, now, random_bytes))


def _event(dataset: Dataset, to: str, sequence: int, now: datetime, random_bytes: RandomBytes) -> Event:
    return Event(
        id=EventId(new_id("evt", now, random_bytes)), at=now, kind="dataset.moved", subject=dataset.id,
        project=dataset.project_id,
        details={
            "sequence": sequence, "generation": 0, "name": f"data {dataset.name}", "from": "", "to": to,
            "snapshots_bytes": dataset.size_bytes, "member": dataset.created_by, "mode": "data", "labels": "{}",
            "asked_at_us": microseconds(now),
        },
    )  # fmt: skip
