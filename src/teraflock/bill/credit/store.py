"""All SQL of credits."""

from typing import Final

from teraflock.bill.credit.model import Grant
from teraflock.storage.database import Row, Transaction

_COLUMNS: Final = (
    "id, project_id, reason, currency, micros, from_us, expires_us, drawn_micros, expired, moves"
)


def put(tx: Transaction, grant: Grant) -> None:
    tx.run(
        f"INSERT INTO credit_grant ({_COLUMNS}) VALUES (:id, :project, :reason, :currency, :micros, :from_us,"
        " :expires_us, :drawn, :expired, :moves) ON CONFLICT (id) DO UPDATE SET"
        " drawn_micros = excluded.drawn_micros, expired = excluded.expired, moves = excluded.moves",
        id=grant.id,
        project=grant.project_id,
        reason=grant.reason,
        currency=grant.currency,
        micros=grant.micros,
        from_us=grant.from_us,
        expires_us=grant.expires_us,
        drawn=grant.drawn_micros,
        expired=int(grant.expired),
        moves=grant.moves,
    )


def grants(tx: Transaction, project_id: str) -> list[Grant]:
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM credit_grant WHERE project_id = :project ORDER BY expires_us, id",
        project=project_id,
    )
    return [_grant_from(row) for row in rows]


def projects_with_grants(tx: Transaction) -> set[str]:
    return {row[0] for row in tx.all("SELECT DISTINCT project_id FROM credit_grant WHERE expired = 0")}


def expired_in_all_projects(tx: Transaction, us: int) -> list[Grant]:
    """Those that are over since before `us` and not yet lapsed."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM credit_grant WHERE expired = 0 AND expires_us <= :us ORDER BY id", us=us
    )
    return [_grant_from(row) for row in rows]


def _grant_from(row: Row) -> Grant:
    id, project, reason, currency, micros, from_us, expires_us, drawn, expired, moves = row
    return Grant(
        id=id, project_id=project, reason=reason, currency=currency, micros=micros, from_us=from_us,
        expires_us=expires_us, drawn_micros=drawn, expired=bool(expired), moves=moves,
    )  # fmt: skip
