"""All SQL of purchases. Terms are added, never changed."""

from typing import Final

from teraflock.bill.purchase.model import Cover, Limit, Purchase, Term
from teraflock.storage.database import Row, Transaction

_PURCHASE: Final = "id, project_id, instance_id, mode, years, upfront, renews, due_us, ended"
_TERM: Final = (
    "purchase_id, sequence, kind, instance_id, from_us, until_us, gpu, gpus, vcpus, ram_bytes, disk_bytes, currency,"
    " month_micros, fee_micros"
)


def put(tx: Transaction, purchase: Purchase) -> None:
    tx.run(
        f"INSERT INTO purchase ({_PURCHASE})"
        " VALUES (:id, :project, :instance, :mode, :years, :upfront, :renews, :due_us, :ended)"
        " ON CONFLICT (id) DO UPDATE SET renews = excluded.renews, due_us = excluded.due_us, ended = excluded.ended",
        id=purchase.id,
        project=purchase.project_id,
        instance=purchase.instance_id,
        mode=purchase.mode,
        years=purchase.years,
        upfront=int(purchase.upfront),
        renews=int(purchase.renews),
        due_us=purchase.due_us,
        ended=int(purchase.ended),
    )


def add_term(tx: Transaction, term: Term) -> None:
    c = term.covers
    values = (
        term.purchase_id, term.sequence, term.kind, term.instance_id, term.from_us, term.until_us, c.gpu, c.gpus,
        c.vcpus, c.ram_bytes, c.disk_bytes, term.currency, term.month_micros, term.fee_micros,
    )  # fmt: skip
    names = ", ".join(f":{name.strip()}" for name in _TERM.split(","))
    tx.run_many(f"INSERT INTO purchase_term ({_TERM}) VALUES ({names})", [values])


def purchase(tx: Transaction, project_id: str, id: str) -> Purchase | None:
    row = tx.one(
        f"SELECT {_PURCHASE} FROM purchase WHERE project_id = :project AND id = :id",
        project=project_id,
        id=id,
    )
    return _purchase_from(row) if row else None


def purchases(tx: Transaction, project_id: str) -> list[Purchase]:
    rows = tx.all(
        f"SELECT {_PURCHASE} FROM purchase WHERE project_id = :project ORDER BY id", project=project_id
    )
    return [_purchase_from(row) for row in rows]


def due_in_all_projects(tx: Transaction, us: int, *, limit: int) -> list[Purchase]:
    rows = tx.all(
        f"SELECT {_PURCHASE} FROM purchase WHERE ended = 0 AND due_us <= :us ORDER BY due_us, id LIMIT :limit",
        us=us,
        limit=limit,
    )
    return [_purchase_from(row) for row in rows]


def standing_of_instance(tx: Transaction, instance_id: str) -> Purchase | None:
    row = tx.one(
        f"SELECT {_PURCHASE} FROM purchase WHERE instance_id = :instance AND ended = 0 ORDER BY id",
        instance=instance_id,
    )
    return _purchase_from(row) if row else None


def terms(tx: Transaction, purchase_id: str) -> list[Term]:
    rows = tx.all(
        f"SELECT {_TERM} FROM purchase_term WHERE purchase_id = :id ORDER BY sequence", id=purchase_id
    )
    return [_term_from(row) for row in rows]


def terms_in_all_projects(tx: Transaction) -> list[Term]:
    """Purchases are few beside intervals: the biller reads them all once per turn."""
    return [
        _term_from(row)
        for row in tx.each(f"SELECT {_TERM} FROM purchase_term ORDER BY purchase_id, sequence")
    ]


def _purchase_from(row: Row) -> Purchase:
    id, project, instance, mode, years, upfront, renews, due_us, ended = row
    return Purchase(
        id=id, project_id=project, instance_id=instance, mode=mode, years=years, upfront=bool(upfront),
        renews=bool(renews), due_us=due_us, ended=bool(ended),
    )  # fmt: skip


def _term_from(row: Row) -> Term:
    id, sequence, kind, instance, from_us, until_us, gpu, gpus, vcpus, ram, disk, currency, month, fee = row
    return Term(
        purchase_id=id, sequence=sequence, kind=kind, instance_id=instance, from_us=from_us, until_us=until_us,
        covers=Cover(gpu=gpu, gpus=gpus, vcpus=vcpus, ram_bytes=ram, disk_bytes=disk), currency=currency,
        month_micros=month, fee_micros=fee,
    )  # fmt: skip


# Limits

_LIMIT: Final = "project_id, member_id, micros, month, spent_micros"


def limit(tx: Transaction, project_id: str, member_id: str) -> Limit | None:
    row = tx.one(
        f"SELECT {_LIMIT} FROM purchase_limit WHERE project_id = :project AND member_id = :member",
        project=project_id,
        member=member_id,
    )
    return _limit_from(row) if row else None


def limits(tx: Transaction, project_id: str) -> list[Limit]:
    rows = tx.all(
        f"SELECT {_LIMIT} FROM purchase_limit WHERE project_id = :project ORDER BY member_id",
        project=project_id,
    )
    return [_limit_from(row) for row in rows]


def put_limit(tx: Transaction, limit: Limit) -> None:
    tx.run(
        f"INSERT INTO purchase_limit ({_LIMIT}) VALUES (:project, :member, :micros, :month, :spent)"
        " ON CONFLICT (project_id, member_id) DO UPDATE SET micros = excluded.micros, month = excluded.month,"
        " spent_micros = excluded.spent_micros",
        project=limit.project_id,
        member=limit.member_id,
        micros=limit.micros,
        month=limit.month,
        spent=limit.spent_micros,
    )


def remove_limit(tx: Transaction, project_id: str, member_id: str) -> bool:
    return bool(
        tx.run(
            "DELETE FROM purchase_limit WHERE project_id = :project AND member_id = :member",
            project=project_id,
            member=member_id,
        )
    )


def _limit_from(row: Row) -> Limit:
    project_id, member_id, micros, month, spent = row
    return Limit(project_id=project_id, member_id=member_id, micros=micros, month=month, spent_micros=spent)
