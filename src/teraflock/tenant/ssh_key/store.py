"""All SQL for SSH keys of members. Every read is limited to a member or an organisation."""

from typing import Final

from teraflock.storage.database import Transaction
from teraflock.storage.table import Table
from teraflock.tenant.model import MemberId, OrganisationId
from teraflock.tenant.ssh_key.model import SshKey

_KEY: Final = Table("member_ssh_key", SshKey)


def keys(
    tx: Transaction, organisation: OrganisationId, member: MemberId | None, *, after: str, limit: int
) -> tuple[SshKey, ...]:
    """The keys of an organisation or of one member."""
    rows = tx.all(
        f"SELECT {_KEY.names_in('k')} FROM member_ssh_key k JOIN member m ON m.id = k.member_id"
        " WHERE m.organisation_id = :organisation AND (:member = '' OR k.member_id = :member)"
        " AND k.id > :after ORDER BY k.id LIMIT :limit",
        organisation=organisation,
        member=member or "",
        after=after,
        limit=limit,
    )
    return tuple(_KEY.value(row) for row in rows)


def keys_of(tx: Transaction, member: MemberId) -> tuple[SshKey, ...]:
    return _KEY.all(tx, "WHERE member_id = :member ORDER BY id", member=member)


def key(tx: Transaction, organisation: OrganisationId, id: str) -> SshKey | None:
    row = tx.one(
        f"SELECT {_KEY.names_in('k')} FROM member_ssh_key k JOIN member m ON m.id = k.member_id"
        " WHERE k.id = :id AND m.organisation_id = :organisation",
        id=id,
        organisation=organisation,
    )
    return _KEY.value(row) if row else None


def put_key(tx: Transaction, value: SshKey) -> None:
    _KEY.add(tx, value)


def remove_key(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM member_ssh_key WHERE id = :id", id=id)


def forget_keys(tx: Transaction, member: MemberId) -> None:
    tx.run("DELETE FROM member_ssh_key WHERE member_id = :member", member=member)
