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
        "SELECT id, project_id, instance_id, name, state, created_at_us FROM snapshot WHERE instance_id = :id"
        " ORDER BY id",
        id=instance,
    )
    return tuple(
        Snapshot(
            id=SnapshotId(row[0]),
            project_id=ProjectId(row[1]),
            instance_id=InstanceId(row[2]),
            name=row[3],
            state=row[4],
            created_at=at_microseconds(row[5]),
        )
        for row in rows
    )


def set_state(tx: Transaction, id: str, state: str) -> None:
    tx.run("UPDATE snapshot SET state = :state WHERE id = :id", state=state, id=id)


def remove(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM snapshot WHERE id = :id", id=id)


def remove_all_of(tx: Transaction, instance: InstanceId) -> None:
    tx.run("DELETE FROM snapshot WHERE instance_id = :id", id=instance)
