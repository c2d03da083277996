"""All SQL about snapshots."""

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.instance.model import InstanceId, Snapshot, SnapshotId
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId


def insert(tx: Transaction, snapshot: Snapshot) -> None:
    tx.run(
        "INSERT INTO snapshot (id, project_id, instance_id, name, state, created_at_us)"
        " VALUES (:id, :project, :instance, :name, :state, :at)",
        id=snapshot.id,
        project=snapshot.project_id,
        instance=snapshot.instance_id,
        name=snapshot.name,
        state=snapshot.state,
        at=microseconds(snapshot.created_at),
    )


def of_instance(tx: Transaction, instance: InstanceId) -> tuple[Snapshot, ...]:
    rows = tx.all(
        "SELECT id, project_id, instance_id, name, state, size_bytes, created_at_us, problem FROM snapshot"
        " WHERE instance_id = :id ORDER BY id",
        id=instance,
    )
    return tuple(
        Snapshot(
            id=SnapshotId(row[0]),
            project_id=ProjectId(row[1]),
            instance_id=InstanceId(row[2]),
            name=row[3],
            state=row[4],
            size_bytes=row[5],
            created_at=at_microseconds(row[6]),
            problem=row[7],
        )
        for row in rows
    )


def kept_bytes(tx: Transaction, instance: InstanceId) -> int:
    """What the snapshots of an instance keep beside it, all together."""
    row = tx.one(
        "SELECT COALESCE(SUM(size_bytes), 0) FROM snapshot WHERE instance_id = :id AND state = 'ready'",
        id=instance,
    )
    return int(row[0]) if row else 0


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
