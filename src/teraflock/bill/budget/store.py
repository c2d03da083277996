"""All SQL of budgets and of what was told about them."""

from typing import Final

import msgspec

from teraflock.bill.budget.model import Budget, Told
from teraflock.storage.database import Row, Transaction

_COLUMNS: Final = "project_id, currency, micros, levels, hard_stop, notice_seconds"


def put(tx: Transaction, budget: Budget) -> None:
    tx.run(
        f"INSERT INTO budget ({_COLUMNS}) VALUES (:project, :currency, :micros, :levels, :hard_stop, :notice)"
        " ON CONFLICT (project_id) DO UPDATE SET currency = excluded.currency, micros = excluded.micros,"
        " levels = excluded.levels, hard_stop = excluded.hard_stop, notice_seconds = excluded.notice_seconds",
        project=budget.project_id,
        currency=budget.currency,
        micros=budget.micros,
        levels=msgspec.json.encode(budget.levels).decode(),
        hard_stop=int(budget.hard_stop),
        notice=budget.notice_seconds,
    )


def remove(tx: Transaction, project_id: str) -> bool:
    return bool(tx.run("DELETE FROM budget WHERE project_id = :project", project=project_id))


def budget(tx: Transaction, project_id: str) -> Budget | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM budget WHERE project_id = :project", project=project_id)
    return _budget_from(row) if row else None


def budgets_in_all_projects(tx: Transaction) -> list[Budget]:
    return [_budget_from(row) for row in tx.all(f"SELECT {_COLUMNS} FROM budget ORDER BY project_id")]


def told(tx: Transaction, project_id: str, month: str) -> Told:
    rows = tx.all(
        "SELECT kind, level, at_us FROM budget_notice WHERE project_id = :project AND month = :month",
        project=project_id,
        month=month,
    )
    at = {row[0]: row[2] for row in rows}
    return Told(
        levels=frozenset(row[1] for row in rows if row[0] == "level"),
        announced_us=at.get("announced"),
        stopped_us=at.get("stopped"),
    )


def note(
    tx: Transaction, project_id: str, month: str, kind: str, level: int, now_us: int, spent: int, limit: int
) -> None:
    tx.run(
        "INSERT INTO budget_notice (project_id, month, kind, level, at_us, spent_micros, limit_micros)"
        " VALUES (:project, :month, :kind, :level, :now, :spent, :limit_micros)"
        " ON CONFLICT (project_id, month, kind, level) DO NOTHING",
        project=project_id,
        month=month,
        kind=kind,
        level=level,
        now=now_us,
        spent=spent,
        limit_micros=limit,
    )


def forget(tx: Transaction, project_id: str, month: str) -> None:
    """A new budget is told about anew."""
    tx.run(
        "DELETE FROM budget_notice WHERE project_id = :project AND month = :month",
        project=project_id,
        month=month,
    )


def _budget_from(row: Row) -> Budget:
    project, currency, micros, levels, hard_stop, notice = row
    return Budget(
        project_id=project, currency=currency, micros=micros, levels=msgspec.json.decode(levels, type=tuple[int, ...]),
        hard_stop=bool(hard_stop), notice_seconds=notice,
    )  # fmt: skip
