"""All SQL for runs, their secrets and their checkpoints.

`wanted` is written only by requests; everything else only by the process that holds the run (`worker`). So a request
and the loop never overwrite each other.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.run.model import Checkpoint, Run, RunId
from teraflock.run.states import OVER, RunWanted
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, add_row, among
from teraflock.tenant.model import ProjectId

_RUN: Final = Table("run", Run)
_CHECKPOINT: Final = Table("run_checkpoint", Checkpoint)
_OVER: Final = among(OVER)
_WRITTEN: Final = tuple(each for each in _RUN.columns if each not in ("id", "project_id", "name", "wanted"))
_SET: Final = ", ".join(f"{each} = :{each}" for each in _WRITTEN)


def insert(tx: Transaction, run: Run, sealed: Mapping[str, str]) -> None:
    _RUN.add(tx, run)
    for name, text in sealed.items():
        add_row(tx, "run_secret", run_id=run.id, name=name, sealed=text)


def find(tx: Transaction, project: ProjectId, ref: str) -> Run | None:
    """Find a run by id or name. Of several with one name, the newest."""
    return _RUN.one(
        tx,
        "WHERE project_id = :project AND (id = :ref OR name = :ref) ORDER BY id DESC LIMIT 1",
        project=project,
        ref=ref,
    )


def page(tx: Transaction, project: ProjectId, *, before: str, limit: int, active: bool) -> tuple[Run, ...]:
    """Runs of a project, newest first."""
    only = f" AND phase NOT IN {_OVER}" if active else ""
    return _RUN.all(
        tx,
        f"WHERE project_id = :project AND (:before = '' OR id < :before){only} ORDER BY id DESC LIMIT :limit",
        project=project,
        before=before,
        limit=limit,
    )


def of_sweep(tx: Transaction, project: ProjectId, sweep: str) -> tuple[Run, ...]:
    return _RUN.all(
        tx,
        "WHERE project_id = :project AND sweep = :sweep AND sweep <> '' ORDER BY id",
        project=project,
        sweep=sweep,
    )


def count_active(tx: Transaction, project: ProjectId) -> int:
    row = tx.one(f"SELECT COUNT(*) FROM run WHERE project_id = :id AND phase NOT IN {_OVER}", id=project)
    return int(row[0]) if row else 0


def is_active_name(tx: Transaction, project: ProjectId, name: str) -> bool:
    """Whether a run of this name is not over."""
    row = tx.one(
        f"SELECT 1 FROM run WHERE project_id = :project AND name = :name AND phase NOT IN {_OVER} LIMIT 1",
        project=project,
        name=name,
    )
    return row is not None


def set_wanted(tx: Transaction, id: RunId, wanted: RunWanted, now: datetime) -> None:
    """Also makes the run due, so that the loop sees it at once."""
    tx.run(
        "UPDATE run SET wanted = :wanted, due_at_us = :now WHERE id = :id",
        wanted=wanted.value,
        now=microseconds(now),
        id=id,
    )


def put_retried(tx: Transaction, run: Run) -> bool:
    """Write a run that is queued again. False: it is not over any more."""
    values = dict(zip(_RUN.columns, _RUN.row(run), strict=True))
    values = {name: value for name, value in values.items() if name in (*_WRITTEN, "id", "wanted")}
    changed = tx.run(f"UPDATE run SET wanted = :wanted, {_SET} WHERE id = :id AND phase IN {_OVER}", **values)
    return changed == 1


def sealed_secrets(tx: Transaction, id: RunId) -> dict[str, str]:
    rows = tx.all("SELECT name, sealed FROM run_secret WHERE run_id = :id ORDER BY name", id=id)
    return {row[0]: row[1] for row in rows}


# The loop


def lease_in_all_projects(
    tx: Transaction, worker: str, now: datetime, until: datetime, *, limit: int
) -> tuple[Run, ...]:
    """Take runs that are due and that no living worker has."""
    rows = tx.all(
        f"SELECT id FROM run WHERE due_at_us <= :now AND phase NOT IN {_OVER}"
        " AND (worker = '' OR worker_until_us < :now) ORDER BY due_at_us, id LIMIT :limit",
        now=microseconds(now),
        limit=limit,
    )
    found = []
    for (id,) in rows:
        if tx.run(
            "UPDATE run SET worker = :worker, worker_until_us = :until WHERE id = :id"
            " AND (worker = '' OR worker_until_us < :now)",
            worker=worker,
            until=microseconds(until),
            now=microseconds(now),
            id=id,
        ):
            row = tx.one(f"{_RUN.select} WHERE id = :id", id=id)
            if row:
                found.append(_RUN.value(row))
    return tuple(found)


def put_held(tx: Transaction, run: Run, worker: str, *, release: bool) -> bool:
    """Write a run that this worker holds. False: another worker has taken it over, so nothing is written."""
    values = dict(zip(_RUN.columns, _RUN.row(run), strict=True))
    values = {name: value for name, value in values.items() if name in (*_WRITTEN, "id")}
    kept = "''" if release else "worker"
    sql = f"UPDATE run SET {_SET}, worker = {kept} WHERE id = :id AND worker = :worker"
    return tx.run(sql, worker=worker, **values) == 1


def held_in_all_projects(tx: Transaction, id: RunId, worker: str) -> Run | None:
    return _RUN.one(tx, "WHERE id = :id AND worker = :worker", id=id, worker=worker)


def release(tx: Transaction, id: RunId, worker: str) -> None:
    tx.run("UPDATE run SET worker = '' WHERE id = :id AND worker = :worker", id=id, worker=worker)


def release_all_in_all_projects(tx: Transaction) -> None:
    """Take every run from its worker: this process is the only one."""
    tx.run("UPDATE run SET worker = '' WHERE worker <> ''")


def over_before_in_all_projects(tx: Transaction, before: datetime, *, limit: int) -> tuple[Run, ...]:
    """Runs whose files are kept long enough."""
    return _RUN.all(
        tx,
        f"WHERE phase IN {_OVER} AND ended_at_us < :before ORDER BY ended_at_us LIMIT :limit",
        before=microseconds(before),
        limit=limit,
    )


def remove(tx: Transaction, id: RunId) -> None:
    for table, column in (("run_secret", "run_id"), ("run_checkpoint", "run_id"), ("run", "id")):
        tx.run(f"DELETE FROM {table} WHERE {column} = :id", id=id)


def specs_in_all_projects(tx: Transaction) -> Iterable[tuple[str, str]]:
    """The project and the uploaded files of every run."""
    rows = tx.all(f"{_RUN.select} ORDER BY id")
    return [(run.project_id, run.spec.workdir) for run in map(_RUN.value, rows) if run.spec.workdir]


# Checkpoints


def checkpoints(tx: Transaction, id: RunId) -> tuple[Checkpoint, ...]:
    """The checkpoints of a run, oldest first."""
    return _CHECKPOINT.all(tx, "WHERE run_id = :id ORDER BY written_ns, name", id=id)


def put_checkpoint(tx: Transaction, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint with the same name."""
    tx.run(
        "DELETE FROM run_checkpoint WHERE run_id = :run AND name = :name",
        run=checkpoint.run_id,
        name=checkpoint.name,
    )
    _CHECKPOINT.add(tx, checkpoint)


def remove_checkpoint(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM run_checkpoint WHERE id = :id", id=id)


def kept_bytes(tx: Transaction, project: ProjectId) -> int:
    """What the server stores for the runs of a project: outputs and checkpoints."""
    row = tx.one(
        "SELECT COALESCE((SELECT SUM(outputs_bytes) FROM run WHERE project_id = :id), 0)"
        " + COALESCE((SELECT SUM(c.size_bytes) FROM run_checkpoint c JOIN run r ON r.id = c.run_id"
        " WHERE r.project_id = :id), 0)",
        id=project,
    )
    return int(row[0]) if row else 0


def is_due_in_all_projects(tx: Transaction, now: datetime) -> bool:
    row = tx.one(
        f"SELECT 1 FROM run WHERE due_at_us <= :now AND phase NOT IN {_OVER} LIMIT 1", now=microseconds(now)
    )
    return row is not None
