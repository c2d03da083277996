"""All SQL about snapshots."""

from typing import Final

from teraflock.instance.model import SNAPSHOT_MOVES, InstanceId, Snapshot, SnapshotState
from teraflock.storage.database import Transaction
from teraflock.storage.life_cycle import LifeCycle
from teraflock.storage.table import Table

_SNAPSHOT: Final = Table("snapshot", Snapshot)
STATES: Final = LifeCycle("snapshot", SNAPSHOT_MOVES)


def insert(tx: Transaction, snapshot: Snapshot) -> None:
    _SNAPSHOT.add(tx, snapshot)


def of_instance(tx: Transaction, instance: InstanceId) -> tuple[Snapshot, ...]:
    return _SNAPSHOT.all(tx, "WHERE instance_id = :id ORDER BY id", id=instance)


def kept_bytes(tx: Transaction, instance: InstanceId) -> int:
    """The total size of an instance's snapshots, and of copies of its disk on other hosts."""
    rows = tx.all(
        "SELECT COALESCE(SUM(size_bytes), 0) FROM snapshot WHERE instance_id = :id AND state = 'ready'"
        " UNION ALL SELECT COALESCE(SUM(size_bytes), 0) FROM disk_copy WHERE instance_id = :id AND state = 'ready'",
        id=instance,
    )
    return sum(int(row[0]) for row in rows)


def move(tx: Transaction, id: str, state: SnapshotState, *, size_bytes: int = 0, problem: str = "") -> None:
    STATES.move(tx, state, "id = :id", columns={"size_bytes": size_bytes, "problem": problem}, id=id)


def remove(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM snapshot WHERE id = :id", id=id)


def remove_all_of(tx: Transaction, instance: InstanceId) -> None:
    tx.run("DELETE FROM snapshot WHERE instance_id = :id", id=instance)
