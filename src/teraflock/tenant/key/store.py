"""All SQL for keys, and for the actor of a key.

Every read is limited to a key or an organisation. Reads across all organisations say so in their names.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table
from teraflock.tenant.model import Actor, ApiKey, KeyId, MemberId, OrganisationId, Role

_KEY: Final = Table("api_key", ApiKey)
_BEHIND_KEY: Final = (
    "SELECT k.digest, k.project_id, k.role_max, k.expires_at_us, m.id, m.name, m.organisation_id, m.is_operator,"
    " r.project_id, r.role FROM api_key k JOIN member m ON m.id = k.member_id"
    " LEFT JOIN member_role r ON r.member_id = k.member_id"
    " WHERE k.id = :id AND k.revoked_at_us IS NULL AND m.removed_at_us IS NULL"
    " AND (k.expires_at_us IS NULL OR k.expires_at_us > :now)"
)


def actor_of_key(tx: Transaction, id: KeyId, now: datetime) -> tuple[Actor, str] | None:
    """The actor of a valid key, and the digest of its secret. One statement, because every request runs it."""
    return actor_from(id, tx.all(_BEHIND_KEY, id=id, now=microseconds(now)))


def actor_from(id: str, rows: Sequence[Row]) -> tuple[Actor, str] | None:
    """The actor, and the digest of the secret, from rows as `_BEHIND_KEY` selects them: one for each role."""
    if not rows:
        return None
    digest, project_id, role_max, expires_at_us, member_id, name, organisation_id, is_operator, _, _ = rows[0]
    actor = Actor(
        key_id=KeyId(id),
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


def key(tx: Transaction, organisation: OrganisationId, id: str) -> ApiKey | None:
    row = tx.one(
        f"SELECT {_KEY.names_in('k')} FROM api_key k JOIN member m ON m.id = k.member_id"
        " WHERE k.id = :id AND m.organisation_id = :organisation",
        id=id,
        organisation=organisation,
    )
    return _KEY.value(row) if row else None


def key_of_any_organisation(tx: Transaction, id: str) -> ApiKey | None:
    return _KEY.one(tx, "WHERE id = :id", id=id)


def keys(
    tx: Transaction,
    organisation: OrganisationId,
    member: MemberId | None,
    project_id: str,
    *,
    after: str,
    limit: int,
) -> tuple[ApiKey, ...]:
    """Keys of an organisation, of one member, or for one project, including revoked ones."""
    rows = tx.all(
        f"SELECT {_KEY.names_in('k')} FROM api_key k JOIN member m ON m.id = k.member_id"
        " WHERE m.organisation_id = :organisation AND (:member = '' OR k.member_id = :member)"
        " AND (:project = '' OR k.project_id = :project) AND k.id > :after ORDER BY k.id LIMIT :limit",
        organisation=organisation,
        member=member or "",
        project=project_id,
        after=after,
        limit=limit,
    )
    return tuple(_KEY.value(row) for row in rows)


def keys_by_name(
    tx: Transaction, organisation: str, member: MemberId | None, name: str, *, limit: int
) -> list[tuple[ApiKey, str]]:
    """Active keys with this name, each with the name of its member. An empty organisation means all of them."""
    rows = tx.all(
        f"SELECT {_KEY.names_in('k')}, m.name FROM api_key k JOIN member m ON m.id = k.member_id"
        " WHERE k.name = :name AND k.revoked_at_us IS NULL"
        " AND (:organisation = '' OR m.organisation_id = :organisation)"
        " AND (:member = '' OR k.member_id = :member) ORDER BY k.id LIMIT :limit",
        name=name,
        organisation=organisation,
        member=member or "",
        limit=limit,
    )
    return [(_KEY.value(row[:-1]), row[-1]) for row in rows]


def put_key(tx: Transaction, key: ApiKey, digest: str) -> None:
    tx.run_many(_KEY.insert_with("digest"), [(digest, *_KEY.row(key))])


def revoke_key(tx: Transaction, id: KeyId, now: datetime) -> None:
    tx.run(
        "UPDATE api_key SET revoked_at_us = :now WHERE id = :id AND revoked_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )
