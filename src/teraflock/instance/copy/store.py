"""All SQL about copies of disks."""

from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.instance.copy.model import READY, DiskCopy
from teraflock.instance.model import InstanceId
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table

COPY: Final = Table("disk_copy", DiskCopy)


def insert(tx: Transaction, copy: DiskCopy) -> None:
    COPY.add(tx, copy)


def all_in_all_projects(tx: Transaction) -> tuple[DiskCopy, ...]:
    return tuple(COPY.value(row) for row in tx.all(f"{COPY.select} ORDER BY instance_id, id"))


def of_instance(tx: Transaction, id: InstanceId) -> tuple[DiskCopy, ...]:
    return COPY.all(tx, "WHERE instance_id = :id ORDER BY id", id=id)


def touch(tx: Transaction, id: str, now: datetime) -> None:
    tx.run("UPDATE disk_copy SET touched_at_us = :now WHERE id = :id", now=microseconds(now), id=id)


def set_ready(tx: Transaction, id: str, size_bytes: int) -> None:
    tx.run(
        "UPDATE disk_copy SET state = :state, size_bytes = :size WHERE id = :id",
        state=READY,
        size=size_bytes,
        id=id,
    )


def remove(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM disk_copy WHERE id = :id", id=id)
