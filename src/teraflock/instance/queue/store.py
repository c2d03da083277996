"""All SQL about queued launches."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.base.size import Size
from teraflock.instance.queue.model import QueuedLaunch, Release
from teraflock.instance.states import ENDED
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, among, in_list, number
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.project.store import IN_ORGANISATION

_QUEUED: Final = Table("queued_launch", QueuedLaunch, embed={"need": ""})
_UPDATE: Final = (
    f"UPDATE queued_launch SET {', '.join(f'{name} = :{name}' for name in _QUEUED.columns if name != 'id')}"
    " WHERE id = :id"
)


def insert(tx: Transaction, queued: QueuedLaunch) -> None:
    tx.run_many(_QUEUED.insert, [_QUEUED.row(queued)])


def put(tx: Transaction, queued: QueuedLaunch) -> None:
    tx.run_many(_UPDATE, [dict(zip(_QUEUED.columns, _QUEUED.row(queued), strict=True))])


def page(
    tx: Transaction, project: ProjectId, *, after: str, limit: int, ended: bool
) -> tuple[QueuedLaunch, ...]:
    """Queued launches of a project, oldest first; with `ended`, also those that no longer wait."""
    states = "" if ended else " AND state = 'waiting'"
    return _QUEUED.all(
        tx,
        f"WHERE project_id = :project{states} AND id > :after ORDER BY id LIMIT :limit",
        project=project,
        after=after,
        limit=limit,
    )


def find(tx: Transaction, project: ProjectId, ref: str) -> QueuedLaunch | None:
    """Find a queued launch by id, or a waiting one by its name."""
    return _QUEUED.one(
        tx,
        "WHERE project_id = :project AND (id = :ref OR (name = :ref AND name <> ''"
        " AND state = 'waiting')) ORDER BY id",
        project=project,
        ref=ref,
    )


def lock_waiting(tx: Transaction, id: str) -> QueuedLaunch | None:
    """Lock a waiting launch until the transaction ends. None: it no longer waits."""
    return _QUEUED.lock(tx, "WHERE id = :id AND state = 'waiting'", id=id)


def project_of_in_all_projects(tx: Transaction, id: str) -> str:
    """The project of a queued launch. Empty: there is no such launch."""
    row = tx.one("SELECT project_id FROM queued_launch WHERE id = :id", id=id)
    return str(row[0]) if row else ""


def count_cancelled_of_organisation(tx: Transaction, organisation: OrganisationId, since: datetime) -> int:
    """How many launches of an organisation were cancelled since a time."""
    return number(
        tx,
        f"SELECT COUNT(*) FROM queued_launch WHERE project_id IN ({IN_ORGANISATION}) AND state = 'cancelled'"
        " AND ended_at_us >= :since",
        id=organisation,
        since=microseconds(since),
    )


def count_waiting(tx: Transaction, project: ProjectId) -> int:
    return number(
        tx,
        "SELECT COUNT(*) FROM queued_launch WHERE project_id = :project AND state = 'waiting'",
        project=project,
    )


def waiting_in_all_projects(tx: Transaction, *, limit: int) -> tuple[QueuedLaunch, ...]:
    """The oldest waiting launches of all projects."""
    return _QUEUED.all(tx, "WHERE state = 'waiting' ORDER BY id LIMIT :limit", limit=limit)


def waiting_among_in_all_projects(tx: Transaction, ids: Sequence[str]) -> set[str]:
    """Those of some queued launches that still wait."""
    if not ids:
        return set()
    marks, values = in_list(ids)
    rows = tx.all(f"SELECT id FROM queued_launch WHERE id IN ({marks}) AND state = 'waiting'", **values)
    return {row[0] for row in rows}


def is_any_waiting_in_all_projects(tx: Transaction) -> bool:
    return tx.one("SELECT 1 FROM queued_launch WHERE state = 'waiting' LIMIT 1") is not None


def releases_in_all_projects(tx: Transaction, *, limit: int) -> list[Release]:
    """What running instances give back at their time limits, the earliest first. They keep their disks."""
    rows = tx.all(
        "SELECT stop_at_us, host_id, gpu, gpus, held_vcpus, held_ram_bytes FROM instance WHERE stop_at_us IS NOT NULL"
        f" AND wanted = 'running' AND phase NOT IN {among(ENDED)} AND host_id IS NOT NULL"
        " ORDER BY stop_at_us, id LIMIT :limit",
        limit=limit,
    )
    return [
        Release(at_microseconds(at), host, Size(gpu=gpu, gpus=int(gpus), vcpus=vcpus, ram_bytes=ram))
        for at, host, gpu, gpus, vcpus, ram in rows
    ]


def forget_in_all_projects(tx: Transaction, ended_before: datetime) -> None:
    tx.run(
        "DELETE FROM queued_launch WHERE state <> 'waiting' AND ended_at_us < :before",
        before=microseconds(ended_before),
    )
