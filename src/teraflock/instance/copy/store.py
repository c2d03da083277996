"""All SQL about copies of disks."""

from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.instance.copy.model import DiskCopy
from teraflock.instance.copy.states import COPY_MOVES, CopyState
from teraflock.instance.model import InstanceId
from teraflock.storage.database import Transaction
from teraflock.storage.life_cycle import LifeCycle
from teraflock.storage.table import Table

COPY: Final = Table("disk_copy", DiskCopy)
STATES: Final = LifeCycle("disk_copy", COPY_MOVES)


def insert(tx: Transaction, copy: DiskCopy) -> None:
    COPY.add(tx, copy)


def all_in_all_projects(tx: Transaction) -> tuple[DiskCopy, ...]:
    return tuple(COPY.value(row) for row in tx.all(f"{COPY.select} ORDER BY instance_id, id"))


def of_instance(tx: Transaction, id: InstanceId) -> tuple[DiskCopy, ...]:
    return COPY.all(tx, "WHERE instance_id = :id ORDER BY id", id=id)


def touch(tx: Transaction, id: str, now: datetime) -> None:
    tx.run("UPDATE disk_copy SET touched_at_us = :now WHERE id = :id", now=microseconds(now), id=id)


def set_ready(tx: Transaction, id: str, size_bytes: int) -> None:
    STATES.move(tx, CopyState.READY, "id = :id", columns={"size_bytes": size_bytes}, id=id)


def remove(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM disk_copy WHERE id = :id", id=id)
