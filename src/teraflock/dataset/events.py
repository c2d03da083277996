"""Events of datasets. The meter reads them like the events of a stopped instance.

The size is in `snapshots_bytes`, and `mode` marks it as data, so that it has its own price.
"""

from datetime import datetime

from teraflock.base.events import Details, Event, RandomBytes, moved_event
from teraflock.dataset.model import Dataset
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event


def record_ready(tx: Transaction, dataset: Dataset, now: datetime, random_bytes: RandomBytes) -> None:
    """Record that the dataset is complete. It is charged from now on."""
    record_event(tx, _event(dataset, "stopped", 1, now, random_bytes))


def record_deleted(tx: Transaction, dataset: Dataset, now: datetime, random_bytes: RandomBytes) -> None:
    """Record that the dataset is deleted. It is charged until now."""
    record_event(tx, _event(dataset, "deleting", 2, now, random_bytes))


def _event(dataset: Dataset, to: str, sequence: int, now: datetime, random_bytes: RandomBytes) -> Event:
    details: Details = {"name": f"data {dataset.name}", "sequence": sequence, "to": to}
    details |= {"snapshots_bytes": dataset.size_bytes, "mode": "data"}
    return moved_event("dataset", dataset, now, random_bytes, details)
