"""All SQL of purchases. Terms are added and never changed."""

from typing import Final

from teraflock.bill.purchase.model import Purchase, PurchaseLimit, Term
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table
from teraflock.tenant.model import ProjectId

_PURCHASE: Final = Table("purchase", Purchase)
_TERM: Final = Table("purchase_term", Term, embed={"covers": ""})
_LIMIT: Final = Table("purchase_limit", PurchaseLimit)


def put(tx: Transaction, purchase: Purchase) -> None:
    tx.run_many(_PURCHASE.upsert("id", change=("renews", "due_us", "ended")), [_PURCHASE.row(purchase)])


def add_term(tx: Transaction, term: Term) -> None:
    _TERM.add(tx, term)


def purchase(tx: Transaction, project_id: ProjectId, id: str) -> Purchase | None:
    return _PURCHASE.one(tx, "WHERE project_id = :project AND id = :id", project=project_id, id=id)


def purchases(tx: Transaction, project_id: ProjectId) -> tuple[Purchase, ...]:
    return _PURCHASE.all(tx, "WHERE project_id = :project ORDER BY id", project=project_id)


def due_in_all_projects(tx: Transaction, us: int, *, limit: int) -> tuple[Purchase, ...]:
    return _PURCHASE.all(
        tx, "WHERE ended = 0 AND due_us <= :us ORDER BY due_us, id LIMIT :limit", us=us, limit=limit
    )


def standing_of_instance(tx: Transaction, instance_id: str) -> Purchase | None:
    return _PURCHASE.one(tx, "WHERE instance_id = :instance AND ended = 0 ORDER BY id", instance=instance_id)


def terms(tx: Transaction, purchase_id: str) -> tuple[Term, ...]:
    return _TERM.all(tx, "WHERE purchase_id = :id ORDER BY sequence", id=purchase_id)


def terms_in_all_projects(tx: Transaction) -> list[Term]:
    """There are few purchases, so the biller reads all of them once per turn."""
    return [_TERM.value(row) for row in tx.each(f"{_TERM.select} ORDER BY purchase_id, sequence")]


# Limits


def limit(tx: Transaction, project_id: ProjectId, member_id: str) -> PurchaseLimit | None:
    return _LIMIT.one(
        tx, "WHERE project_id = :project AND member_id = :member", project=project_id, member=member_id
    )


def limits(tx: Transaction, project_id: ProjectId) -> tuple[PurchaseLimit, ...]:
    return _LIMIT.all(tx, "WHERE project_id = :project ORDER BY member_id", project=project_id)


def put_limit(tx: Transaction, limit: PurchaseLimit) -> None:
    tx.run_many(_LIMIT.upsert("project_id", "member_id"), [_LIMIT.row(limit)])


def remove_limit(tx: Transaction, project_id: ProjectId, member_id: str) -> bool:
    return bool(
        tx.run(
            "DELETE FROM purchase_limit WHERE project_id = :project AND member_id = :member",
            project=project_id,
            member=member_id,
        )
    )
