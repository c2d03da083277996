"""All SQL for organisations.

A deleted organisation keeps its row, because bills and the audit log refer to it. Its name can be used again.
"""

from datetime import datetime
from typing import Final

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.storage.database import Row, Transaction
from teraflock.storage.life_cycle import LifeCycle
from teraflock.storage.table import Table
from teraflock.tenant.model import ORGANISATION_MOVES, Organisation, OrganisationId, OrganisationState

# `state_since_us` is 0 for an organisation whose state never changed.
_ORGANISATION: Final = Table("organisation", Organisation, leave_out=("state_since",))
STATES: Final = LifeCycle("organisation", ORGANISATION_MOVES)
_SELECT: Final = f"SELECT state_since_us, {_ORGANISATION.names} FROM organisation"


def organisation(tx: Transaction, id: OrganisationId) -> Organisation | None:
    row = tx.one(f"{_SELECT} WHERE id = :id", id=id)
    return _organisation_from(row) if row else None


def organisation_by_name(tx: Transaction, name: str) -> Organisation | None:
    row = tx.one(f"{_SELECT} WHERE name = :name", name=name)
    return _organisation_from(row) if row else None


def is_organisation_name_taken(tx: Transaction, name: str) -> bool:
    return tx.one("SELECT 1 FROM organisation WHERE name = :name", name=name) is not None


def names_of_organisations(tx: Transaction, *, limit: int) -> list[str]:
    rows = tx.all(
        "SELECT name FROM organisation WHERE state <> 'deleted' ORDER BY id LIMIT :limit", limit=limit
    )
    return [row[0] for row in rows]


def count_organisations(tx: Transaction) -> int:
    """The number of organisations with members. Works on any schema version, because an update may come after it."""
    row = tx.one("SELECT COUNT(DISTINCT organisation_id) FROM member WHERE removed_at_us IS NULL")
    return int(row[0]) if row else 0


def all_organisations(tx: Transaction, *, after: str, limit: int) -> tuple[Organisation, ...]:
    rows = tx.all(
        f"{_SELECT} WHERE id > :after AND state <> 'deleted' ORDER BY id LIMIT :limit",
        after=after,
        limit=limit,
    )
    return tuple(_organisation_from(row) for row in rows)


def organisations_to_end(tx: Transaction) -> tuple[Organisation, ...]:
    """Organisations whose instances must be stopped or deleted."""
    rows = tx.all(f"{_SELECT} WHERE state IN ('suspended', 'deleting') ORDER BY id")
    return tuple(_organisation_from(row) for row in rows)


def put_organisation(tx: Transaction, organisation: Organisation) -> None:
    _ORGANISATION.add(tx, organisation)


def move(tx: Transaction, id: OrganisationId, state: OrganisationState, reason: str, now: datetime) -> bool:
    """False: the organisation cannot get this state any more."""
    columns = {"state_reason": reason, "state_since_us": microseconds(now)}
    return STATES.move(tx, state, "id = :id", columns=columns, id=id) == 1


def rename(tx: Transaction, id: OrganisationId, name: str) -> None:
    tx.run("UPDATE organisation SET name = :name WHERE id = :id", name=name, id=id)


def contents(tx: Transaction, id: OrganisationId) -> tuple[int, int]:
    """The number of instances and images in its projects, read in the transaction that would delete it."""
    row = tx.one(
        "SELECT (SELECT COUNT(*) FROM instance i JOIN project p ON p.id = i.project_id"
        " WHERE p.organisation_id = :id AND i.phase <> 'gone'),"
        " (SELECT COUNT(*) FROM image i JOIN project p ON p.id = i.project_id WHERE p.organisation_id = :id)",
        id=id,
    )
    assert row is not None
    return int(row[0]), int(row[1])


def _organisation_from(row: Row) -> Organisation:
    since_us, *rest = row
    return _ORGANISATION.value(tuple(rest), state_since=at_microseconds(since_us) if since_us else None)
