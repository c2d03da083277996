"""All SQL about snapshots."""

from typing import Final

from teraflock.instance.model import InstanceId, Snapshot
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table

_SNAPSHOT: Final = Table("snapshot", Snapshot)


def insert(tx: Transaction, snapshot: Snapshot) -> None:
    _SNAPSHOT.add(tx, snapshot)


def of_instance(tx: Transaction, instance: InstanceId) -> tuple[Snapshot, ...]:
    rows = tx.all(f"{_SNAPSHOT.select} WHERE instance_id = :id ORDER BY id", id=instance)
    return tuple(_SNAPSHOT.value(row) for row in rows)


def kept_bytes(tx: Transaction, instance: InstanceId) -> int:
    """The total size of an instance's snapshots, and of copies of its disk on other hosts."""
    rows = tx.all(
        "SELECT COALESCE(SUM(size_bytes), 0) FROM snapshot WHERE instance_id = :id AND state = 'ready'"
        " UNION ALL SELECT COALESCE(SUM(size_bytes), 0) FROM disk_copy WHERE instance_id = :id AND state = 'ready'",
        id=instance,
    )
    return sum(int(row[0]) for row in rows)


def set_state(tx: Transaction, id: str, state: str, *, size_bytes: int = 0, problem: str = "") -> None:
    tx.run(
        "UPDATE snapshot SET state = :state, size_bytes = :size, problem = :problem WHERE id = :id",
        state=state,
        size=size_bytes,
        problem=problem,
        id=id,
    )


def remove(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM snapshot WHERE id = :id", id=id)


def remove_all_of(tx: Transaction, instance: InstanceId) -> None:
    tx.run("DELETE FROM snapshot WHERE instance_id = :id", id=instance)
