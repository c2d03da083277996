"""All SQL about organisations, projects, members, keys and the audit log.

What holds:
- every read names its organisation, member or key; those that look into all of them say so in their names;
- a removed project or member keeps its row, for what still names it, and is found by no read here but by its id
  in the audit log.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.storage.database import Row, Transaction
from teraflock.tenant.model import (
    Actor,
    ApiKey,
    AuditRow,
    KeyId,
    Member,
    MemberId,
    Organisation,
    OrganisationId,
    Project,
    ProjectId,
    Quota,
    Role,
)

_PROJECT: Final = "id, organisation_id, name, quota, network_number, created_at_us"
_MEMBER: Final = "id, organisation_id, name, is_operator, created_at_us, removed_at_us"
_KEY: Final = "id, member_id, name, project_id, role_max, created_at_us, expires_at_us, revoked_at_us"
_AUDIT: Final = "id, at_us, organisation_id, project_id, key_id, member_id, action, subject, details"
_Details = dict[str, str | int | float | bool | None]
_quota_decoder: Final = msgspec.json.Decoder(Quota)


# --- the house -----------------------------------------------------------------------------------------------------


def installation_id(tx: Transaction) -> str | None:
    row = tx.one("SELECT id FROM installation")
    return str(row[0]) if row else None


def put_installation(tx: Transaction, id: str, now: datetime) -> None:
    tx.run("INSERT INTO installation (id, made_at_us) VALUES (:id, :now)", id=id, now=microseconds(now))


def operators_in_all_organisations(tx: Transaction) -> tuple[Member, ...]:
    rows = tx.all(f"SELECT {_MEMBER} FROM member WHERE is_operator = 1 AND removed_at_us IS NULL ORDER BY id")
    return _members_from(tx, rows)


# --- who stands behind a key ---------------------------------------------------------------------------------------

_BEHIND_KEY: Final = (
    "SELECT k.digest, k.project_id, k.role_max, k.expires_at_us, m.id, m.name, m.organisation_id, m.is_operator,"
    " r.project_id, r.role FROM api_key k JOIN member m ON m.id = k.member_id"
    " LEFT JOIN member_role r ON r.member_id = k.member_id"
    " WHERE k.id = :id AND k.revoked_at_us IS NULL AND m.removed_at_us IS NULL"
    " AND (k.expires_at_us IS NULL OR k.expires_at_us > :now)"
)


def behind_key(tx: Transaction, id: KeyId, now: datetime) -> tuple[Actor, str] | None:
    """The actor behind a key that holds now, and the digest of its secret. Asked at every request: one statement."""
    rows = tx.all(_BEHIND_KEY, id=id, now=microseconds(now))
    if not rows:
        return None
    digest, project_id, role_max, expires_at_us, member_id, name, organisation_id, is_operator, _, _ = rows[0]
    actor = Actor(
        key_id=id,
        member_id=member_id,
        member_name=name,
        organisation_id=organisation_id,
        is_operator=bool(is_operator) and not project_id and not role_max,
        roles={row[8]: Role(row[9]) for row in rows if row[9] is not None},
        project_id=project_id,
        role_max=Role(role_max) if role_max else None,
        expires_at=None if expires_at_us is None else at_microseconds(expires_at_us),
    )
    return actor, digest


# --- organisations -------------------------------------------------------------------------------------------------


def organisation(tx: Transaction, id: OrganisationId) -> Organisation | None:
    row = tx.one("SELECT id, name, created_at_us FROM organisation WHERE id = :id", id=id)
    return _organisation_from(row) if row else None


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


# --- projects ------------------------------------------------------------------------------------------------------


def project(tx: Transaction, organisation: OrganisationId, ref: str) -> Project | None:
    """By id or name. An id has a `_`, which no name has."""
    row = tx.one(
        f"SELECT {_PROJECT} FROM project WHERE organisation_id = :organisation AND removed_at_us IS NULL"
        f" AND {'id' if '_' in ref else 'name'} = :ref",
        organisation=organisation,
        ref=ref,
    )
    return _project_from(row) if row else None


def project_of_any_organisation(tx: Transaction, id: str) -> Project | None:
    row = tx.one(f"SELECT {_PROJECT} FROM project WHERE id = :id AND removed_at_us IS NULL", id=id)
    return _project_from(row) if row else None


def projects(
    tx: Transaction, organisation: OrganisationId, only: Sequence[str] | None, *, after: str = "", limit: int
) -> tuple[Project, ...]:
    """The projects of an organisation, of them only those named, or all with None."""
    among, values = _among("id", only)
    rows = tx.all(
        f"SELECT {_PROJECT} FROM project WHERE organisation_id = :organisation AND removed_at_us IS NULL"
        f" AND id > :after{among} ORDER BY id LIMIT :limit",
        organisation=organisation,
        after=after,
        limit=limit,
        **values,
    )
    return tuple(_project_from(row) for row in rows)


def projects_with_default_first(
    tx: Transaction, organisation: OrganisationId, default: str, only: Sequence[str] | None, *, limit: int
) -> tuple[Project, ...]:
    among, values = _among("id", only)
    rows = tx.all(
        f"SELECT {_PROJECT} FROM project WHERE organisation_id = :organisation AND removed_at_us IS NULL{among}"
        " ORDER BY CASE WHEN name = :first THEN 0 ELSE 1 END, id LIMIT :limit",
        organisation=organisation,
        first=default,
        limit=limit,
        **values,
    )
    return tuple(_project_from(row) for row in rows)


def free_network_in_all_projects(tx: Transaction) -> int:
    """The lowest network number that no project has; a removed one has its own until engines took the network down."""
    if tx.one("SELECT 1 FROM project WHERE network_number = 0") is None:
        return 0
    row = tx.one(
        "SELECT MIN(p.network_number) + 1 FROM project p WHERE p.network_number >= 0 AND NOT EXISTS"
        " (SELECT 1 FROM project n WHERE n.network_number = p.network_number + 1)"
    )
    assert row is not None, "number 0 is taken, so some number has no next one"
    return int(row[0])


def put_project(tx: Transaction, project: Project) -> None:
    tx.run(
        f"INSERT INTO project ({_PROJECT}, removed_at_us)"
        " VALUES (:id, :organisation, :name, :quota, :network, :created, NULL)",
        id=project.id,
        organisation=project.organisation_id,
        name=project.name,
        quota=msgspec.json.encode(project.quota, order="sorted").decode(),
        network=project.network_number,
        created=microseconds(project.created_at),
    )


def set_quota(tx: Transaction, id: ProjectId, quota: Quota) -> None:
    tx.run(
        "UPDATE project SET quota = :quota WHERE id = :id",
        quota=msgspec.json.encode(quota, order="sorted").decode(),
        id=id,
    )


def contents(tx: Transaction, id: ProjectId) -> tuple[int, int]:
    """How many instances and images a project still has.

    The one look downstream: a project may go only when it is empty, and that must be seen in the same transaction.
    """
    row = tx.one(
        "SELECT (SELECT COUNT(*) FROM instance WHERE project_id = :id AND phase <> 'gone'),"
        " (SELECT COUNT(*) FROM image WHERE project_id = :id)",
        id=id,
    )
    assert row is not None
    return int(row[0]), int(row[1])


def remove_project(tx: Transaction, id: ProjectId, now: datetime) -> None:
    """With the roles in it, and the keys for it."""
    tx.run("UPDATE project SET removed_at_us = :now WHERE id = :id", now=microseconds(now), id=id)
    tx.run("DELETE FROM member_role WHERE project_id = :id", id=id)
    tx.run(
        "UPDATE api_key SET revoked_at_us = :now WHERE project_id = :id AND revoked_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )


# --- members -------------------------------------------------------------------------------------------------------


def member(tx: Transaction, organisation: OrganisationId, ref: str) -> Member | None:
    """By id or name. No name begins like an id."""
    row = tx.one(
        f"SELECT {_MEMBER} FROM member WHERE organisation_id = :organisation AND removed_at_us IS NULL"
        f" AND {'id' if ref.startswith('mem_') else 'name'} = :ref",
        organisation=organisation,
        ref=ref,
    )
    return _members_from(tx, [row])[0] if row else None


def member_of_any_organisation(tx: Transaction, id: str) -> Member | None:
    row = tx.one(f"SELECT {_MEMBER} FROM member WHERE id = :id AND removed_at_us IS NULL", id=id)
    return _members_from(tx, [row])[0] if row else None


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
    """The members of an organisation; of them only those with a role in these projects or in all, or all with None."""
    among, values = _among("r.project_id", None if seen_in is None else ("", *seen_in))
    having = (
        f" AND EXISTS (SELECT 1 FROM member_role r WHERE r.member_id = member.id{among})" if among else ""
    )
    rows = tx.all(
        f"SELECT {_MEMBER} FROM member WHERE organisation_id = :organisation AND removed_at_us IS NULL"
        f" AND id > :after{having} ORDER BY id LIMIT :limit",
        organisation=organisation,
        after=after,
        limit=limit,
        **values,
    )
    return _members_from(tx, rows)


def owners(tx: Transaction, organisation: OrganisationId) -> tuple[MemberId, ...]:
    """Who owns the whole organisation."""
    rows = tx.all(
        "SELECT m.id FROM member m JOIN member_role r ON r.member_id = m.id"
        " WHERE m.organisation_id = :organisation AND m.removed_at_us IS NULL"
        " AND r.project_id = '' AND r.role = 'owner' ORDER BY m.id",
        organisation=organisation,
    )
    return tuple(MemberId(row[0]) for row in rows)


def put_member(tx: Transaction, member: Member) -> None:
    tx.run(
        f"INSERT INTO member ({_MEMBER}) VALUES (:id, :organisation, :name, :operator, :created, NULL)",
        id=member.id,
        organisation=member.organisation_id,
        name=member.name,
        operator=int(member.is_operator),
        created=microseconds(member.created_at),
    )
    _put_roles(tx, member)


def take_back_member(tx: Transaction, member: Member) -> None:
    """One who was removed is there again, with the roles given now and none of his old keys."""
    tx.run(
        "UPDATE member SET removed_at_us = NULL, is_operator = 0, created_at_us = :now WHERE id = :id",
        now=microseconds(member.created_at),
        id=member.id,
    )
    _put_roles(tx, member)


def remove_member(tx: Transaction, id: MemberId, now: datetime) -> None:
    """With all roles and keys."""
    tx.run("UPDATE member SET removed_at_us = :now WHERE id = :id", now=microseconds(now), id=id)
    tx.run("DELETE FROM member_role WHERE member_id = :id", id=id)
    tx.run(
        "UPDATE api_key SET revoked_at_us = :now WHERE member_id = :id AND revoked_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )


def put_role(tx: Transaction, member: MemberId, project_id: str, role: Role | None) -> None:
    """Give a role in place of the one there is; None takes it away."""
    tx.run(
        "DELETE FROM member_role WHERE member_id = :member AND project_id = :project",
        member=member,
        project=project_id,
    )
    if role is not None:
        tx.run(
            "INSERT INTO member_role (member_id, project_id, role) VALUES (:member, :project, :role)",
            member=member,
            project=project_id,
            role=role.value,
        )


# --- keys ----------------------------------------------------------------------------------------------------------


def key(tx: Transaction, organisation: OrganisationId, id: str) -> ApiKey | None:
    row = tx.one(
        f"SELECT {_prefixed('k', _KEY)} FROM api_key k JOIN member m ON m.id = k.member_id"
        " WHERE k.id = :id AND m.organisation_id = :organisation",
        id=id,
        organisation=organisation,
    )
    return _key_from(row) if row else None


def key_of_any_organisation(tx: Transaction, id: str) -> ApiKey | None:
    row = tx.one(f"SELECT {_KEY} FROM api_key WHERE id = :id", id=id)
    return _key_from(row) if row else None


def keys(
    tx: Transaction,
    organisation: OrganisationId,
    member: MemberId | None,
    project_id: str,
    *,
    after: str,
    limit: int,
) -> tuple[ApiKey, ...]:
    """Keys of an organisation, or of one member, or for one project; revoked ones too."""
    rows = tx.all(
        f"SELECT {_prefixed('k', _KEY)} FROM api_key k JOIN member m ON m.id = k.member_id"
        " WHERE m.organisation_id = :organisation AND (:member = '' OR k.member_id = :member)"
        " AND (:project = '' OR k.project_id = :project) AND k.id > :after ORDER BY k.id LIMIT :limit",
        organisation=organisation,
        member=member or "",
        project=project_id,
        after=after,
        limit=limit,
    )
    return tuple(_key_from(row) for row in rows)


def put_key(tx: Transaction, key: ApiKey, digest: str) -> None:
    tx.run(
        f"INSERT INTO api_key ({_KEY}, digest)"
        " VALUES (:id, :member, :name, :project, :role_max, :created, :expires, NULL, :digest)",
        id=key.id,
        member=key.member_id,
        name=key.name,
        project=key.project_id,
        role_max=key.role_max.value if key.role_max else "",
        created=microseconds(key.created_at),
        expires=None if key.expires_at is None else microseconds(key.expires_at),
        digest=digest,
    )


def revoke_key(tx: Transaction, id: KeyId, now: datetime) -> None:
    tx.run(
        "UPDATE api_key SET revoked_at_us = :now WHERE id = :id AND revoked_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )


# --- the audit log -------------------------------------------------------------------------------------------------


def put_audit(tx: Transaction, row: AuditRow) -> None:
    tx.run(
        f"INSERT INTO audit ({_AUDIT})"
        " VALUES (:id, :at, :organisation, :project, :key, :member, :action, :subject, :details)",
        id=row.id,
        at=microseconds(row.at),
        organisation=row.organisation_id,
        project=row.project_id,
        key=row.key_id,
        member=row.member_id,
        action=row.action,
        subject=row.subject,
        details=msgspec.json.encode(row.details, order="sorted").decode(),
    )


def audit(
    tx: Transaction, organisation: OrganisationId, only: Sequence[str] | None, *, after: str, limit: int
) -> tuple[AuditRow, ...]:
    """The newest first, of these projects alone or of the whole organisation; `after`: the last one known."""
    among, values = _among("project_id", only)
    rows = tx.all(
        f"SELECT {_AUDIT} FROM audit WHERE organisation_id = :organisation"
        f" AND (:after = '' OR id < :after){among} ORDER BY id DESC LIMIT :limit",
        organisation=organisation,
        after=after,
        limit=limit,
        **values,
    )
    return tuple(_audit_from(row) for row in rows)


# --- parts of the above  -------------------------------------------------------------------------------------------


def _put_roles(tx: Transaction, member: Member) -> None:
    for project_id, role in member.roles.items():
        put_role(tx, member.id, project_id, role)


def _among(column: str, only: Iterable[str] | None) -> tuple[str, Mapping[str, str]]:
    """SQL that a column has one of these values, with the values; None: any."""
    if only is None:
        return "", {}
    values = {f"among_{index}": value for index, value in enumerate(only)}
    return f" AND {column} IN ({', '.join(':' + name for name in values) or 'NULL'})", values


def _prefixed(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{column}" for column in columns.split(", "))


def _organisation_from(row: Row) -> Organisation:
    id, name, created_at_us = row
    return Organisation(id=OrganisationId(id), name=name, created_at=at_microseconds(created_at_us))


def _project_from(row: Row) -> Project:
    id, organisation_id, name, quota, network_number, created_at_us = row
    return Project(
        id=ProjectId(id),
        organisation_id=OrganisationId(organisation_id),
        name=name,
        quota=_quota_decoder.decode(quota),
        network_number=network_number,
        created_at=at_microseconds(created_at_us),
    )


def _members_from(tx: Transaction, rows: Sequence[Row]) -> tuple[Member, ...]:
    if not rows:
        return ()
    among, values = _among("member_id", [row[0] for row in rows])
    roles: dict[str, dict[str, Role]] = defaultdict(dict)
    for member_id, project_id, role in tx.all(
        f"SELECT member_id, project_id, role FROM member_role WHERE 1 = 1{among} ORDER BY project_id",
        **values,
    ):
        roles[member_id][project_id] = Role(role)
    return tuple(_member_from(row, roles[row[0]]) for row in rows)


def _member_from(row: Row, roles: Mapping[str, Role]) -> Member:
    id, organisation_id, name, is_operator, created_at_us, removed_at_us = row
    return Member(
        id=MemberId(id),
        organisation_id=OrganisationId(organisation_id),
        name=name,
        is_operator=bool(is_operator),
        roles=roles,
        created_at=at_microseconds(created_at_us),
        removed_at=None if removed_at_us is None else at_microseconds(removed_at_us),
    )


def _key_from(row: Row) -> ApiKey:
    id, member_id, name, project_id, role_max, created_at_us, expires_at_us, revoked_at_us = row
    return ApiKey(
        id=KeyId(id),
        member_id=MemberId(member_id),
        name=name,
        project_id=project_id,
        role_max=Role(role_max) if role_max else None,
        created_at=at_microseconds(created_at_us),
        expires_at=None if expires_at_us is None else at_microseconds(expires_at_us),
        revoked_at=None if revoked_at_us is None else at_microseconds(revoked_at_us),
    )


def _audit_from(row: Row) -> AuditRow:
    id, at_us, organisation_id, project_id, key_id, member_id, action, subject, details = row
    return AuditRow(
        id=id,
        at=at_microseconds(at_us),
        organisation_id=OrganisationId(organisation_id),
        project_id=project_id,
        key_id=key_id,
        member_id=member_id,
        action=action,
        subject=subject,
        details=msgspec.json.decode(details, type=_Details),
    )
