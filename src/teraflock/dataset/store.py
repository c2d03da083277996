"""All SQL for datasets."""

from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.dataset.model import DATASET_MOVES, Dataset, DatasetState
from teraflock.storage.database import Transaction
from teraflock.storage.life_cycle import LifeCycle
from teraflock.storage.table import Table
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.project.store import IN_ORGANISATION

_DATASET: Final = Table("dataset", Dataset)
STATES: Final = LifeCycle("dataset", DATASET_MOVES)
_FIND: Final = f"{_DATASET.select} WHERE project_id = :project AND (id = :ref OR name = :ref) ORDER BY id"


def insert(tx: Transaction, dataset: Dataset) -> bool:
    """False: the project has a dataset with this name or content."""
    values = dict(zip(_DATASET.columns, _DATASET.row(dataset), strict=True))
    return bool(tx.run(f"{_DATASET.insert} ON CONFLICT DO NOTHING", **values))


def of_project(tx: Transaction, project: ProjectId) -> tuple[Dataset, ...]:
    return _DATASET.all(tx, "WHERE project_id = :project ORDER BY id", project=project)


def find(tx: Transaction, project: ProjectId, ref: str) -> Dataset | None:
    """Find a dataset by id or name."""
    row = tx.one(_FIND, project=project, ref=ref)
    return _DATASET.value(row) if row else None


def find_to_use(tx: Transaction, project: ProjectId, ref: str) -> Dataset | None:
    """Like `find`, and nobody can delete the dataset until the transaction ends."""
    rows = tx.lock_shared(_FIND, project=project, ref=ref)
    return _DATASET.value(rows[0]) if rows else None


def find_to_change(tx: Transaction, project: ProjectId, ref: str) -> Dataset | None:
    """Like `find`, and nobody can use or change the dataset until the transaction ends."""
    rows = tx.lock(_FIND, project=project, ref=ref)
    return _DATASET.value(rows[0]) if rows else None


def with_digest(tx: Transaction, project: ProjectId, digest: str) -> Dataset | None:
    return _DATASET.one(
        tx, "WHERE project_id = :project AND digest = :digest", project=project, digest=digest
    )


def move(tx: Transaction, id: str, state: DatasetState, now: datetime, *, ready_at: datetime | None) -> bool:
    """False: the dataset cannot get this state any more."""
    ready_us = microseconds(ready_at) if ready_at else None
    columns = {"used_at_us": microseconds(now), "ready_at_us": ready_us}
    return STATES.move(tx, state, "id = :id", columns=columns, id=id) == 1


def set_used(tx: Transaction, id: str, now: datetime) -> None:
    tx.run("UPDATE dataset SET used_at_us = :now WHERE id = :id", now=microseconds(now), id=id)


def remove(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM dataset WHERE id = :id", id=id)


def users(tx: Transaction, id: str) -> int:
    """The number of existing instances that have the dataset."""
    row = tx.one(
        "SELECT COUNT(*) FROM instance WHERE phase <> 'gone' AND spec LIKE :mark", mark=f'%"id":"{id}"%'
    )
    return int(row[0]) if row else 0


def kept_bytes(tx: Transaction, project: ProjectId) -> int:
    return _kept_bytes(tx, "project_id = :id", project)


def kept_bytes_of_organisation(tx: Transaction, organisation: OrganisationId) -> int:
    return _kept_bytes(tx, f"project_id IN ({IN_ORGANISATION})", organisation)


def _kept_bytes(tx: Transaction, where: str, id: str) -> int:
    row = tx.one(f"SELECT COALESCE(SUM(size_bytes), 0) FROM dataset WHERE {where}", id=id)
    return int(row[0]) if row else 0


# The loop


def states_in_all_projects(tx: Transaction) -> dict[str, str]:
    """The state of every dataset by its id."""
    return {row[0]: row[1] for row in tx.all("SELECT id, state FROM dataset")}


def by_id_in_all_projects(tx: Transaction, id: str) -> Dataset | None:
    return _DATASET.one(tx, "WHERE id = :id", id=id)


def locked_in_all_projects(tx: Transaction, id: str) -> Dataset | None:
    rows = tx.lock(f"{_DATASET.select} WHERE id = :id", id=id)
    return _DATASET.value(rows[0]) if rows else None


def to_end_in_all_projects(tx: Transaction, unused_since: datetime) -> tuple[Dataset, ...]:
    """Datasets of removed projects and of deleted organisations, and uploads that stopped before a time."""
    rows = tx.all(
        f"SELECT {_DATASET.names_in('d')} FROM dataset d JOIN project p ON p.id = d.project_id"
        " JOIN organisation o ON o.id = p.organisation_id WHERE d.state <> 'deleting'"
        " AND (p.removed_at_us IS NOT NULL OR o.state IN ('deleting', 'deleted')"
        " OR (d.state = 'uploading' AND d.used_at_us < :before)) ORDER BY d.id",
        before=microseconds(unused_since),
    )
    return tuple(map(_DATASET.value, rows))
