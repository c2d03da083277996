"""All SQL for projects.

Every read is limited to an organisation, or says in its name that it is not. The row of a removed project stays,
because other rows refer to it. Only functions whose names say so return it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.clock import microseconds
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, in_list
from teraflock.tenant.model import OrganisationId, Project, ProjectId, Quota
from teraflock.tenant.store import among

IN_ORGANISATION: Final = "SELECT id FROM project WHERE organisation_id = :id AND removed_at_us IS NULL"
"""For stores that sum over the projects of an organisation. Removed projects are empty."""
_PROJECT: Final = Table("project", Project)
NO_NETWORK: Final = -1
"""The network number of a project without a network `default`."""


def project(tx: Transaction, organisation: OrganisationId, ref: str) -> Project | None:
    """Find a project by id or name. Ids contain `_`, names never do."""
    return _PROJECT.one(
        tx,
        "WHERE organisation_id = :organisation AND removed_at_us IS NULL"
        f" AND {'id' if '_' in ref else 'name'} = :ref",
        organisation=organisation,
        ref=ref,
    )


def projects_of_any_organisation(
    tx: Transaction, organisation: str, ref: str, *, limit: int
) -> list[tuple[Project, str]]:
    """Find projects by id or name, each with the name of its organisation. An empty organisation means all."""
    rows = tx.all(
        f"SELECT {_PROJECT.names_in('p')}, o.name FROM project p JOIN organisation o ON o.id = p.organisation_id"
        " WHERE p.removed_at_us IS NULL AND (p.id = :ref OR p.name = :ref)"
        " AND (:organisation = '' OR o.id = :organisation) ORDER BY p.id LIMIT :limit",
        organisation=organisation,
        ref=ref,
        limit=limit,
    )
    return [(_PROJECT.value(row[:-1]), row[-1]) for row in rows]


def removed_project(tx: Transaction, id: str) -> Project | None:
    return _PROJECT.one(tx, "WHERE id = :id AND removed_at_us IS NOT NULL", id=id)


def names_of_any_organisation(tx: Transaction, organisation: str, *, limit: int) -> list[str]:
    rows = tx.all(
        "SELECT DISTINCT name FROM project WHERE removed_at_us IS NULL"
        " AND (:organisation = '' OR organisation_id = :organisation) ORDER BY name LIMIT :limit",
        organisation=organisation,
        limit=limit,
    )
    return [row[0] for row in rows]


def project_of_any_organisation(tx: Transaction, id: str) -> Project | None:
    return _PROJECT.one(tx, "WHERE id = :id AND removed_at_us IS NULL", id=id)


def claim(tx: Transaction, id: str) -> Project | None:
    """Lock the project until the transaction ends. None: it was removed.

    This writes the row without changing it. A serialisable write that depends on the contents of the project and
    writes the row too is therefore run again.
    """
    rows = tx.all(
        f"UPDATE project SET removed_at_us = NULL WHERE id = :id AND removed_at_us IS NULL RETURNING {_PROJECT.names}",
        id=id,
    )
    return _PROJECT.value(rows[0]) if rows else None


def projects(
    tx: Transaction, organisation: OrganisationId, only: Sequence[str] | None, *, after: str = "", limit: int
) -> tuple[Project, ...]:
    """The projects of an organisation; only those in `only`, unless it is None."""
    narrowed, values = among("id", only)
    return _PROJECT.all(
        tx,
        "WHERE organisation_id = :organisation AND removed_at_us IS NULL"
        f" AND id > :after{narrowed} ORDER BY id LIMIT :limit",
        organisation=organisation,
        after=after,
        limit=limit,
        **values,
    )


def projects_with_default_first(
    tx: Transaction, organisation: OrganisationId, default: str, only: Sequence[str] | None, *, limit: int
) -> tuple[Project, ...]:
    narrowed, values = among("id", only)
    return _PROJECT.all(
        tx,
        f"WHERE organisation_id = :organisation AND removed_at_us IS NULL{narrowed}"
        " ORDER BY CASE WHEN name = :first THEN 0 ELSE 1 END, id LIMIT :limit",
        organisation=organisation,
        first=default,
        limit=limit,
        **values,
    )


def lock_networks(tx: Transaction) -> None:
    """Lock the numbers of networks, which all projects share."""
    tx.lock("SELECT id FROM installation ORDER BY id")


def put_project(tx: Transaction, project: Project) -> None:
    _PROJECT.add(tx, project)


def set_quota(tx: Transaction, id: ProjectId, quota: Quota) -> None:
    tx.run(
        "UPDATE project SET quota = :quota WHERE id = :id",
        quota=msgspec.json.encode(quota, order="sorted").decode(),
        id=id,
    )


def set_network(tx: Transaction, id: ProjectId, number: int) -> None:
    """Repeat the number of the project's network `default`. `network/store.py` is the only caller."""
    tx.run("UPDATE project SET network_number = :number WHERE id = :id", number=number, id=id)


def contents(tx: Transaction, id: ProjectId) -> tuple[int, int]:
    """The number of instances and images in a project.

    This reads tables of downstream nouns: only an empty project can be removed, and the same transaction must check it.
    """
    row = tx.one(
        "SELECT (SELECT COUNT(*) FROM instance WHERE project_id = :id AND phase <> 'gone'),"
        " (SELECT COUNT(*) FROM image WHERE project_id = :id)",
        id=id,
    )
    assert row is not None
    return int(row[0]), int(row[1])


def remove_project(tx: Transaction, id: ProjectId, now: datetime) -> None:
    """Remove a project with its roles and keys."""
    tx.run("UPDATE project SET removed_at_us = :now WHERE id = :id", now=microseconds(now), id=id)
    tx.run("DELETE FROM member_role WHERE project_id = :id", id=id)
    tx.run(
        "UPDATE api_key SET revoked_at_us = :now WHERE project_id = :id AND revoked_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )


def name_of_any_organisation(tx: Transaction, id: ProjectId) -> str:
    row = tx.one("SELECT name FROM project WHERE id = :id", id=id)
    assert row is not None, "projects are never deleted, only marked as removed"
    return str(row[0])


def owners_of_any_organisation(tx: Transaction, ids: Sequence[ProjectId]) -> dict[ProjectId, tuple[str, str]]:
    """The names of the organisation and of the project, by the project's id."""
    if not ids:
        return {}
    marks, values = in_list(ids)
    rows = tx.all(
        "SELECT p.id, o.name, p.name FROM project p JOIN organisation o ON o.id = p.organisation_id"
        f" WHERE p.id IN ({marks})",
        **values,
    )
    return {ProjectId(id): (organisation, name) for id, organisation, name in rows}
