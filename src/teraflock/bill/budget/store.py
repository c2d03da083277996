"""All SQL of budgets and their notices, and of instances that should run and will cost something."""

from typing import Final

import msgspec

from teraflock.bill.budget.model import Budget, Cap, Told
from teraflock.instance import store as instances
from teraflock.instance.states import BILLABLE
from teraflock.meter.model import Holding
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, put_row
from teraflock.tenant.model import ProjectId

_BUDGET: Final = Table("budget", Budget)
_CAP: Final = Table("budget_cap", Cap)


def put(tx: Transaction, budget: Budget) -> None:
    tx.run_many(_BUDGET.upsert("project_id"), [_BUDGET.row(budget)])


def remove(tx: Transaction, project_id: ProjectId) -> bool:
    return bool(tx.run("DELETE FROM budget WHERE project_id = :project", project=project_id))


def budget(tx: Transaction, project_id: ProjectId) -> Budget | None:
    return _BUDGET.one(tx, "WHERE project_id = :project", project=project_id)


def is_limited(tx: Transaction, project_id: ProjectId) -> bool:
    """Whether a project has a budget or a cap, or pays in advance. One statement, because every launch needs it."""
    row = tx.one(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM budget WHERE project_id = :project)"
        " OR EXISTS (SELECT 1 FROM budget_cap WHERE project_id = :project)"
        " OR EXISTS (SELECT 1 FROM bill_profile WHERE project_id = :project AND pays = 'prepaid')",
        project=project_id,
    )
    return row is not None


def budgets_in_all_projects(tx: Transaction) -> list[Budget]:
    return list(_BUDGET.all(tx, "ORDER BY project_id"))


def put_cap(tx: Transaction, cap: Cap) -> None:
    tx.run_many(_CAP.upsert("project_id"), [_CAP.row(cap)])


def remove_cap(tx: Transaction, project_id: ProjectId) -> bool:
    return bool(tx.run("DELETE FROM budget_cap WHERE project_id = :project", project=project_id))


def cap(tx: Transaction, project_id: ProjectId) -> Cap | None:
    return _CAP.one(tx, "WHERE project_id = :project", project=project_id)


def caps_in_all_projects(tx: Transaction) -> list[Cap]:
    return list(_CAP.all(tx, "ORDER BY project_id"))


def told(tx: Transaction, project_id: ProjectId, month: str, *, ahead: bool) -> Told:
    """About the budget, or about the prepaid balance."""
    rows = tx.all(
        "SELECT kind, level, at_us, limit_micros FROM budget_notice WHERE project_id = :project AND month = :month",
        project=project_id,
        month=month,
    )
    own = {row[0]: row for row in rows if row[0] != "level" and row[1] == int(ahead)}
    announced, stopped = own.get("announced"), own.get("stopped")
    return Told(
        levels=frozenset(row[1] for row in rows if row[0] == "level"),
        announced_us=announced[2] if announced else None,
        announced_limit_micros=announced[3] if announced else 0,
        stopped_us=stopped[2] if stopped else None,
    )


def note(
    tx: Transaction,
    project_id: ProjectId,
    month: str,
    kind: str,
    level: int,
    now_us: int,
    spent: int,
    limit: int,
) -> None:
    """`level` is the percentage of a level. For other notices it is 0 for a budget and 1 for a prepaid balance."""
    put_row(
        tx,
        "budget_notice",
        "project_id month kind level",
        project_id=project_id,
        month=month,
        kind=kind,
        level=level,
        at_us=now_us,
        spent_micros=spent,
        limit_micros=limit,
    )


def forget(tx: Transaction, project_id: ProjectId, month: str) -> None:
    """A new budget starts without notices. Notices about the prepaid balance stay."""
    tx.run(
        "DELETE FROM budget_notice WHERE project_id = :project AND month = :month AND (kind = 'level' OR level = 0)",
        project=project_id,
        month=month,
    )


class Wished(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that runs or should run."""

    id: str
    held: Holding
    runs: bool
    """It is charged already."""


def wanted_running(tx: Transaction, project_id: ProjectId) -> list[Wished]:
    """All instances of a project that should run, with what they will hold."""
    return [
        Wished(
            id=each.id,
            runs=each.phase in BILLABLE,
            held=Holding(
                size=each.size,
                host=each.host_id,
                region=each.region,
                mode=each.mode,
                card_micros_per_hour=each.card_micros_per_hour,
            ),
        )
        for each in instances.wanted_running(tx, ProjectId(project_id))
    ]
