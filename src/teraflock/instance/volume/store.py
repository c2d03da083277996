"""All SQL for volumes, their snapshots and their copies."""

from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.instance.copy.states import COPY_MOVES, CopyState
from teraflock.instance.volume.model import (
    VOLUME_SNAPSHOT_MOVES,
    ShownVolume,
    Volume,
    VolumeCopy,
    VolumeSnapshot,
    VolumeSnapshotState,
)
from teraflock.storage.database import Transaction
from teraflock.storage.life_cycle import LifeCycle
from teraflock.storage.table import Table
from teraflock.tenant.model import ProjectId

_VOLUME: Final = Table("volume", Volume)
_SNAPSHOT: Final = Table("volume_snapshot", VolumeSnapshot)
SNAPSHOT_STATES: Final = LifeCycle("volume_snapshot", VOLUME_SNAPSHOT_MOVES)
_COPY: Final = Table("volume_copy", VolumeCopy)
COPY_STATES: Final = LifeCycle("volume_copy", COPY_MOVES)
_SET: Final = ", ".join(f"{each} = :{each}" for each in _VOLUME.columns if each != "id")
_OF_PROJECT: Final = f"{_VOLUME.select} WHERE project_id = :project"


def insert(tx: Transaction, volume: Volume) -> None:
    _VOLUME.add(tx, volume)


def put(tx: Transaction, volume: Volume) -> None:
    tx.run(
        f"UPDATE volume SET {_SET} WHERE id = :id",
        **dict(zip(_VOLUME.columns, _VOLUME.row(volume), strict=True)),
    )


def remove(tx: Transaction, id: str) -> None:
    remove_snapshots(tx, id)
    tx.run("DELETE FROM volume WHERE id = :id", id=id)


def of_project(tx: Transaction, project: ProjectId, *, instance: str = "") -> tuple[ShownVolume, ...]:
    """All of them, or those attached to an instance."""
    rows = tx.all(
        f"SELECT {_VOLUME.names_in('v')}, COALESCE(i.name, '') FROM volume v"
        " LEFT JOIN instance i ON i.id = v.instance_id WHERE v.project_id = :project"
        " AND (:ref = '' OR i.id = :ref OR i.name = :ref) ORDER BY v.id",
        project=project,
        ref=instance,
    )
    return tuple(ShownVolume(volume=_VOLUME.value(row[:-1]), instance=row[-1]) for row in rows)


def locked(tx: Transaction, project: ProjectId, ref: str) -> Volume | None:
    """A volume by id or name, that nobody else changes until the transaction ends."""
    rows = tx.lock(f"{_OF_PROJECT} AND (id = :ref OR name = :ref) ORDER BY id", project=project, ref=ref)
    return _VOLUME.value(rows[0]) if rows else None


def snapshots(tx: Transaction, volume_id: str) -> tuple[VolumeSnapshot, ...]:
    return _SNAPSHOT.all(tx, "WHERE volume_id = :id ORDER BY id", id=volume_id)


def insert_snapshot(tx: Transaction, snapshot: VolumeSnapshot) -> None:
    _SNAPSHOT.add(tx, snapshot)


def move_snapshot(tx: Transaction, id: str, state: VolumeSnapshotState, size_bytes: int) -> None:
    SNAPSHOT_STATES.move(tx, state, "id = :id", columns={"size_bytes": size_bytes}, id=id)


def remove_snapshot(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM volume_snapshot WHERE id = :id", id=id)


def remove_snapshots(tx: Transaction, volume_id: str) -> None:
    tx.run("DELETE FROM volume_snapshot WHERE volume_id = :id", id=volume_id)


def copies(tx: Transaction, volume_id: str) -> tuple[VolumeCopy, ...]:
    return _COPY.all(tx, "WHERE volume_id = :id ORDER BY id", id=volume_id)


def insert_copy(tx: Transaction, copy: VolumeCopy) -> None:
    _COPY.add(tx, copy)


def touch_copy(tx: Transaction, id: str, now: datetime) -> None:
    tx.run("UPDATE volume_copy SET touched_at_us = :now WHERE id = :id", now=microseconds(now), id=id)


def set_copy_ready(tx: Transaction, id: str, size_bytes: int) -> None:
    """A complete copy leaves nothing at its source."""
    columns = {"size_bytes": size_bytes, "source_host_id": ""}
    COPY_STATES.move(tx, CopyState.READY, "id = :id", columns=columns, id=id)


def set_copy_removing(tx: Transaction, id: str) -> None:
    COPY_STATES.move(tx, CopyState.REMOVING, "id = :id", id=id)


def remove_copy(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM volume_copy WHERE id = :id", id=id)


def kept_bytes(tx: Transaction, volume_id: str) -> int:
    """The total size of a volume's snapshots, and of its copies on other hosts."""
    rows = tx.all(
        "SELECT COALESCE(SUM(size_bytes), 0) FROM volume_snapshot WHERE volume_id = :id AND state <> 'making'"
        " UNION ALL SELECT COALESCE(SUM(size_bytes), 0) FROM volume_copy WHERE volume_id = :id AND state = 'ready'",
        id=volume_id,
    )
    return sum(int(row[0]) for row in rows)


# The loops


def copies_in_all_projects(tx: Transaction) -> tuple[VolumeCopy, ...]:
    return tuple(map(_COPY.value, tx.all(f"{_COPY.select} ORDER BY volume_id, id")))


def in_all_projects(tx: Transaction) -> tuple[Volume, ...]:
    return tuple(map(_VOLUME.value, tx.all(f"{_VOLUME.select} ORDER BY id")))


def snapshots_in_work_in_all_projects(tx: Transaction) -> dict[str, list[VolumeSnapshot]]:
    """Snapshots that are being made or deleted, by volume."""
    found: dict[str, list[VolumeSnapshot]] = {}
    for each in map(_SNAPSHOT.value, tx.all(f"{_SNAPSHOT.select} WHERE state <> 'ready' ORDER BY id")):
        found.setdefault(each.volume_id, []).append(each)
    return found


def of_instance_in_all_projects(tx: Transaction, instance_id: str) -> tuple[Volume, ...]:
    # The first condition lets the database use the index of attached volumes.
    sql = f"{_VOLUME.select} WHERE instance_id <> '' AND instance_id = :id ORDER BY id"
    return tuple(map(_VOLUME.value, tx.all(sql, id=instance_id)))


def count_on_host_in_all_projects(tx: Transaction, host_id: str) -> int:
    row = tx.one("SELECT COUNT(*) FROM volume WHERE host_id = :id", id=host_id)
    return int(row[0]) if row else 0


def on_host_in_all_projects(tx: Transaction, host_id: str) -> tuple[Volume, ...]:
    return _VOLUME.all(tx, "WHERE host_id = :id ORDER BY id", id=host_id)


def by_id_in_all_projects(tx: Transaction, id: str) -> Volume | None:
    return _VOLUME.one(tx, "WHERE id = :id", id=id)


def locked_in_all_projects(tx: Transaction, id: str) -> Volume | None:
    rows = tx.lock(f"{_VOLUME.select} WHERE id = :id", id=id)
    return _VOLUME.value(rows[0]) if rows else None


def of_removed_projects(tx: Transaction) -> tuple[Volume, ...]:
    """Volumes of removed projects, and of organisations that are deleted."""
    rows = tx.all(
        f"SELECT {_VOLUME.names_in('v')} FROM volume v JOIN project p ON p.id = v.project_id"
        " JOIN organisation o ON o.id = p.organisation_id WHERE v.deleting = 0"
        " AND (p.removed_at_us IS NOT NULL OR o.state IN ('deleting', 'deleted')) ORDER BY v.id"
    )
    return tuple(map(_VOLUME.value, rows))
