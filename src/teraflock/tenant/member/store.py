"""All SQL for members and their roles.

Every read is limited to an organisation, or says in its name that it is not. The row of a removed member stays,
because other rows refer to it. Only functions whose names say so return it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table, add_row
from teraflock.tenant.identity.store import forget_identities
from teraflock.tenant.model import Member, MemberId, OrganisationId, Role
from teraflock.tenant.session.store import forget_member
from teraflock.tenant.ssh_key.store import forget_keys
from teraflock.tenant.store import among

_MEMBER: Final = Table("member", Member, leave_out=("roles",))


def member(tx: Transaction, organisation: OrganisationId, ref: str) -> Member | None:
    """Find a member by id or name. Names never start like ids."""
    row = tx.one(
        f"{_MEMBER.select} WHERE organisation_id = :organisation AND removed_at_us IS NULL"
        f" AND {'id' if ref.startswith('mem_') else 'name'} = :ref",
        organisation=organisation,
        ref=ref,
    )
    return _members_from(tx, [row])[0] if row else None


def members_of_any_organisation(tx: Transaction, ref: str, *, limit: int) -> list[tuple[Member, str]]:
    """Find members by id or name, each with the name of the organisation."""
    rows = tx.all(
        f"SELECT {_MEMBER.names_in('m')}, o.name FROM member m JOIN organisation o ON o.id = m.organisation_id"
        " WHERE m.removed_at_us IS NULL AND (m.id = :ref OR m.name = :ref) ORDER BY m.id LIMIT :limit",
        ref=ref,
        limit=limit,
    )
    found = _members_from(tx, [row[:-1] for row in rows])
    return [(member, row[-1]) for member, row in zip(found, rows, strict=True)]


def names_of_any_organisation(tx: Transaction, *, limit: int) -> list[str]:
    rows = tx.all(
        "SELECT DISTINCT name FROM member WHERE removed_at_us IS NULL ORDER BY name LIMIT :limit", limit=limit
    )
    return [row[0] for row in rows]


def names_in_all_organisations(tx: Transaction, ids: Iterable[str]) -> dict[str, str]:
    """The names of these members, including removed ones. Operators are called `operator`, because tenants do not
    know them."""
    found = {}
    for id in set(ids):
        row = tx.one("SELECT name, is_operator FROM member WHERE id = :id", id=id)
        if row:
            found[id] = "operator" if row[1] else str(row[0])
    return found


def removed_member(tx: Transaction, organisation: OrganisationId, name: str) -> MemberId | None:
    row = tx.one(
        "SELECT id FROM member WHERE organisation_id = :organisation AND name = :name"
        " AND removed_at_us IS NOT NULL",
        organisation=organisation,
        name=name,
    )
    return MemberId(row[0]) if row else None


def members(
    tx: Transaction, organisation: OrganisationId, seen_in: Sequence[str] | None, *, after: str, limit: int
) -> tuple[Member, ...]:
    """The members of an organisation; with `projects`, only those who have a role in one of them or in all."""
    narrowed, values = among("r.project_id", None if seen_in is None else ("", *seen_in))
    having = (
        f" AND EXISTS (SELECT 1 FROM member_role r WHERE r.member_id = member.id{narrowed})"
        if narrowed
        else ""
    )
    rows = tx.all(
        f"{_MEMBER.select} WHERE organisation_id = :organisation AND removed_at_us IS NULL"
        f" AND id > :after{having} ORDER BY id LIMIT :limit",
        organisation=organisation,
        after=after,
        limit=limit,
        **values,
    )
    return _members_from(tx, rows)


def owners(tx: Transaction, organisation: OrganisationId) -> tuple[MemberId, ...]:
    """The owners of the whole organisation."""
    rows = tx.all(
        "SELECT m.id FROM member m JOIN member_role r ON r.member_id = m.id"
        " WHERE m.organisation_id = :organisation AND m.removed_at_us IS NULL"
        " AND r.project_id = '' AND r.role = 'owner' ORDER BY m.id",
        organisation=organisation,
    )
    return tuple(MemberId(row[0]) for row in rows)


def operators_in_all_organisations(tx: Transaction) -> tuple[Member, ...]:
    rows = tx.all(f"{_MEMBER.select} WHERE is_operator = 1 AND removed_at_us IS NULL ORDER BY id")
    return _members_from(tx, rows)


def put_member(tx: Transaction, member: Member) -> None:
    _MEMBER.add(tx, member)
    _put_roles(tx, member)


def take_back_member(tx: Transaction, member: Member) -> None:
    """Add a removed member again, with new roles and without the old keys."""
    tx.run(
        "UPDATE member SET removed_at_us = NULL, is_operator = 0, created_at_us = :now WHERE id = :id",
        now=microseconds(member.created_at),
        id=member.id,
    )
    _put_roles(tx, member)


def remove_member(tx: Transaction, id: MemberId, now: datetime) -> None:
    """Remove a member with all roles, keys, SSH keys, sessions and identities."""
    tx.run("UPDATE member SET removed_at_us = :now WHERE id = :id", now=microseconds(now), id=id)
    tx.run("DELETE FROM member_role WHERE member_id = :id", id=id)
    tx.run(
        "UPDATE api_key SET revoked_at_us = :now WHERE member_id = :id AND revoked_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )
    forget_member(tx, id, now)
    forget_identities(tx, id)
    forget_keys(tx, id)


def put_role(tx: Transaction, member: MemberId, project_id: str, role: Role | None) -> None:
    """Replace a role, or remove it with None."""
    tx.run(
        "DELETE FROM member_role WHERE member_id = :member AND project_id = :project",
        member=member,
        project=project_id,
    )
    if role is not None:
        add_row(tx, "member_role", member_id=member, project_id=project_id, role=role.value)


def _put_roles(tx: Transaction, member: Member) -> None:
    for project_id, role in member.roles.items():
        put_role(tx, member.id, project_id, role)


def _members_from(tx: Transaction, rows: Sequence[Row]) -> tuple[Member, ...]:
    if not rows:
        return ()
    narrowed, values = among("member_id", [row[0] for row in rows])
    roles: dict[str, dict[str, Role]] = defaultdict(dict)
    for member_id, project_id, role in tx.all(
        f"SELECT member_id, project_id, role FROM member_role WHERE 1 = 1{narrowed} ORDER BY project_id",
        **values,
    ):
        roles[member_id][project_id] = Role(role)
    return tuple(_MEMBER.value(row, roles=roles[row[0]]) for row in rows)
