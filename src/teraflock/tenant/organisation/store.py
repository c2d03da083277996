"""All SQL about organisations."""

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.storage.database import Row, Transaction
from teraflock.tenant.model import Organisation, OrganisationId


def organisation(tx: Transaction, id: OrganisationId) -> Organisation | None:
    row = tx.one("SELECT id, name, created_at_us FROM organisation WHERE id = :id", id=id)
    return _organisation_from(row) if row else None


def organisation_called(tx: Transaction, ref: str) -> Organisation | None:
    """By id or name. An id has a `_`, which no name has."""
    row = tx.one("SELECT id FROM organisation WHERE id = :ref OR name = :ref", ref=ref)
    return organisation(tx, OrganisationId(row[0])) if row else None


def is_organisation_name_taken(tx: Transaction, name: str) -> bool:
    return tx.one("SELECT 1 FROM organisation WHERE name = :name", name=name) is not None


def all_organisations(tx: Transaction, *, after: str, limit: int) -> tuple[Organisation, ...]:
    rows = tx.all(
        "SELECT id, name, created_at_us FROM organisation WHERE id > :after ORDER BY id LIMIT :limit",
        after=after,
        limit=limit,
    )
    return tuple(_organisation_from(row) for row in rows)


def put_organisation(tx: Transaction, organisation: Organisation) -> None:
    tx.run(
        "INSERT INTO organisation (id, name, created_at_us) VALUES (:id, :name, :created)",
        id=organisation.id,
        name=organisation.name,
        created=microseconds(organisation.created_at),
    )


def _organisation_from(row: Row) -> Organisation:
    id, name, created_at_us = row
    return Organisation(id=OrganisationId(id), name=name, created_at=at_microseconds(created_at_us))
