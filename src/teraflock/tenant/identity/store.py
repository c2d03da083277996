"""All SQL for identities and for secrets that work once."""

from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, add_missing_row
from teraflock.tenant.identity.model import MemberChoice, MemberIdentity
from teraflock.tenant.model import MemberId

_IDENTITY: Final = Table("member_identity", MemberIdentity)


def choices(
    tx: Transaction, issuer: str, subject: str, email: str, *, limit: int
) -> tuple[MemberChoice, ...]:
    """The members that an identity may sign in as, in all organisations: connected ones first, then those whose name
    is the e-mail address. Operators only if they are connected."""
    rows = tx.all(
        "SELECT m.id, m.name, o.name, i.subject IS NOT NULL AS connected FROM member m"
        " JOIN organisation o ON o.id = m.organisation_id"
        " LEFT JOIN member_identity i ON i.member_id = m.id AND i.issuer = :issuer AND i.subject = :subject"
        " WHERE m.removed_at_us IS NULL AND o.state <> 'deleted'"
        " AND (i.subject IS NOT NULL OR (:email <> '' AND m.is_operator = 0 AND lower(m.name) = :email))"
        " ORDER BY connected DESC, m.id LIMIT :limit",
        issuer=issuer,
        subject=subject,
        email=email,
        limit=limit,
    )
    return tuple(
        MemberChoice(member_id=id, member_name=name, organisation_name=home, is_connected=bool(connected))
        for id, name, home, connected in rows
    )


def put_identity(tx: Transaction, value: MemberIdentity) -> None:
    tx.run_many(_IDENTITY.upsert("issuer", "subject", "member_id"), [_IDENTITY.row(value)])


def identities_of(tx: Transaction, member: MemberId) -> tuple[MemberIdentity, ...]:
    return _IDENTITY.all(tx, "WHERE member_id = :member ORDER BY issuer, subject", member=member)


def forget_identities(tx: Transaction, member: MemberId) -> int:
    return tx.run("DELETE FROM member_identity WHERE member_id = :member", member=member)


def use_once(tx: Transaction, digest: str, expires_at: datetime) -> bool:
    """Mark something as used. False: it was used before."""
    return add_missing_row(tx, "used_once", digest=digest, expires_at_us=microseconds(expires_at))


def forget_used(tx: Transaction, before: datetime) -> int:
    return tx.run("DELETE FROM used_once WHERE expires_at_us < :time", time=microseconds(before))
