"""All SQL about workers and the instances that they lease.

A worker keeps its leases as long as it sends heartbeats. A worker without a heartbeat loses all of them.
"""

from datetime import datetime

from teraflock.base.clock import HOUR_US, at_microseconds, microseconds
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.store import COLUMNS, instances_from
from teraflock.storage.database import Transaction
from teraflock.storage.table import put_row


def lease_due_in_all_projects(
    tx: Transaction, worker: str, *, now: datetime, limit: int
) -> tuple[Instance, ...]:
    """Lease what is due and not leased to a living worker. Skip rows that another transaction is changing."""
    rows = tx.lock_free(
        f"SELECT {COLUMNS} FROM instance WHERE settled = 0 AND due_at_us <= :now AND (lease_owner = '' OR"
        " lease_owner NOT IN (SELECT id FROM worker WHERE until_us > :now)) ORDER BY due_at_us, id LIMIT :limit",
        now=microseconds(now),
        limit=limit,
    )
    tx.run_many(
        "UPDATE instance SET lease_owner = :worker WHERE id = :id", [(worker, row[0]) for row in rows]
    )
    return instances_from(tx, rows)


def is_any_due_in_all_projects(tx: Transaction, now: datetime) -> bool:
    row = tx.one(
        "SELECT 1 FROM instance WHERE settled = 0 AND due_at_us <= :now LIMIT 1", now=microseconds(now)
    )
    return row is not None


def next_due_in_all_projects(tx: Transaction) -> datetime | None:
    row = tx.one("SELECT MIN(due_at_us) FROM instance WHERE settled = 0 AND lease_owner = ''")
    return at_microseconds(row[0]) if row and row[0] is not None else None


def held_by(tx: Transaction, id: InstanceId, worker: str) -> Instance | None:
    """Return the current instance if the worker still has its lease."""
    rows = tx.all(
        f"SELECT {COLUMNS} FROM instance WHERE id = :id AND lease_owner = :worker", id=id, worker=worker
    )
    return instances_from(tx, rows)[0] if rows else None


def lock_held_by(tx: Transaction, id: InstanceId, worker: str) -> Instance | None:
    """Like `held_by`, but lock the row until the transaction ends."""
    rows = tx.lock(
        f"SELECT {COLUMNS} FROM instance WHERE id = :id AND lease_owner = :worker", id=id, worker=worker
    )
    return instances_from(tx, rows)[0] if rows else None


def note_step(tx: Transaction, instance: Instance, worker: str, step: str, now: datetime) -> bool:
    """Record a completed step. Return False, and write nothing, if the row has changed: read it again."""
    changed = tx.run(
        "UPDATE instance SET step = :step, attempts = 0, operation_since_us = :now, version = version + 1"
        " WHERE id = :id AND lease_owner = :worker AND generation = :generation AND wanted = :wanted"
        " AND step = :before AND undoing = 0",
        before=instance.progress.step if instance.progress else "",
        step=step,
        now=microseconds(now),
        id=instance.id,
        worker=worker,
        generation=instance.generation,
        wanted=instance.wanted,
    )
    return changed == 1


def let_go(tx: Transaction, id: InstanceId, worker: str) -> None:
    tx.run(
        "UPDATE instance SET lease_owner = '' WHERE id = :id AND lease_owner = :worker", id=id, worker=worker
    )


def put_off(tx: Transaction, id: InstanceId, worker: str, until: datetime) -> None:
    """End a lease. Nobody leases the instance before `until`."""
    tx.run(
        "UPDATE instance SET lease_owner = '', due_at_us = :until WHERE id = :id AND lease_owner = :worker",
        until=microseconds(until),
        id=id,
        worker=worker,
    )


def take_away(tx: Transaction, id: InstanceId) -> None:
    """Remove the lease of any worker: the operation continues at another step, and that worker's result is
    obsolete."""
    tx.run("UPDATE instance SET lease_owner = '' WHERE id = :id", id=id)


def let_go_all(tx: Transaction) -> None:
    """Remove all leases. For a single worker at its start."""
    tx.run("UPDATE instance SET lease_owner = '' WHERE lease_owner <> ''")
    tx.run("DELETE FROM worker")


def heartbeat(tx: Transaction, worker: str, until: datetime, now: datetime) -> None:
    tx.run("DELETE FROM worker WHERE until_us < :long_ago", long_ago=microseconds(now) - HOUR_US)
    put_row(tx, "worker", "id", id=worker, until_us=microseconds(until))


def end_worker(tx: Transaction, worker: str) -> None:
    tx.run("UPDATE instance SET lease_owner = '' WHERE lease_owner = :worker", worker=worker)
    tx.run("DELETE FROM worker WHERE id = :worker", worker=worker)


def alive(tx: Transaction, now: datetime) -> tuple[str, ...]:
    rows = tx.all("SELECT id FROM worker WHERE until_us > :now ORDER BY id", now=microseconds(now))
    return tuple(row[0] for row in rows)


def is_another_alive(tx: Transaction, worker: str, now: datetime) -> bool:
    row = tx.one(
        "SELECT 1 FROM worker WHERE id <> :id AND until_us > :now LIMIT 1", id=worker, now=microseconds(now)
    )
    return row is not None
