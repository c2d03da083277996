"""All SQL for passwords, sign-in links and sessions.

Reads by secret are limited by it; all other reads are limited to a member or an organisation.
"""

from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table
from teraflock.tenant.key.store import actor_from
from teraflock.tenant.model import Actor, MemberId, OrganisationId
from teraflock.tenant.session.model import ConsoleSession, Login, SignInLink

_LOGIN: Final = Table("console_login", Login)
_LINK: Final = Table("console_link", SignInLink, embed={"limits": ""})
_SESSION: Final = Table("console_session", ConsoleSession, embed={"limits": ""})

_KEY_VALID: Final = (
    " AND (s.key_id = '' OR EXISTS (SELECT 1 FROM api_key k WHERE k.id = s.key_id AND k.revoked_at_us IS NULL"
    " AND (k.expires_at_us IS NULL OR k.expires_at_us > :now)))"
)
_BEHIND_SESSION: Final = (
    "SELECT s.digest, s.project_id, s.role_max, s.limit_expires_at_us, m.id, m.name, m.organisation_id, m.is_operator,"
    " r.project_id, r.role FROM console_session s JOIN member m ON m.id = s.member_id"
    " LEFT JOIN member_role r ON r.member_id = s.member_id"
    " WHERE s.id = :id AND s.revoked_at_us IS NULL AND s.expires_at_us > :now AND m.removed_at_us IS NULL"
    f"{_KEY_VALID}"
)


def actor_of_session(tx: Transaction, id: str, now: datetime) -> tuple[Actor, str] | None:
    """The actor of a valid session, and the digest of its secret. One statement, because every request runs it."""
    return actor_from(id, tx.all(_BEHIND_SESSION, id=id, now=microseconds(now)))


def login(tx: Transaction, user_name: str) -> Login | None:
    """The login with this user name, unless its member was removed or its organisation deleted."""
    row = tx.one(
        f"SELECT {_LOGIN.names_in('l')} FROM console_login l JOIN member m ON m.id = l.member_id"
        " JOIN organisation o ON o.id = m.organisation_id"
        " WHERE l.user_name = :name AND m.removed_at_us IS NULL AND o.state <> 'deleted'",
        name=user_name,
    )
    return _LOGIN.value(row) if row else None


def login_of(tx: Transaction, member: MemberId) -> Login | None:
    return _LOGIN.one(tx, "WHERE member_id = :member", member=member)


def is_user_name_taken(tx: Transaction, user_name: str, member: MemberId) -> bool:
    """Whether another member of any organisation has this user name."""
    row = tx.one(
        "SELECT 1 FROM console_login WHERE user_name = :name AND member_id <> :member",
        name=user_name,
        member=member,
    )
    return row is not None


def put_login(tx: Transaction, value: Login) -> None:
    tx.run_many(_LOGIN.upsert("member_id"), [_LOGIN.row(value)])


def use_totp_step(tx: Transaction, member: MemberId, step: int) -> bool:
    """Record the step of an accepted code. False: the code, or a later one, was used meanwhile."""
    changed = tx.run(
        "UPDATE console_login SET totp_step = :step WHERE member_id = :member AND totp_step < :step",
        step=step,
        member=member,
    )
    return changed == 1


def put_link(tx: Transaction, value: SignInLink, digest: str) -> None:
    tx.run_many(_LINK.insert_with("digest"), [(digest, *_LINK.row(value))])


def link(tx: Transaction, id: str, now: datetime) -> tuple[SignInLink, str] | None:
    """A link that can be used, and the digest of its secret."""
    row = tx.one(
        f"SELECT {_LINK.names_in('s')}, s.digest FROM console_link s JOIN member m ON m.id = s.member_id"
        " WHERE s.id = :id AND s.used_at_us IS NULL AND s.expires_at_us > :now AND m.removed_at_us IS NULL"
        f"{_KEY_VALID}",
        id=id,
        now=microseconds(now),
    )
    return (_LINK.value(row[:-1]), row[-1]) if row else None


def use_link(tx: Transaction, id: str, now: datetime) -> bool:
    """Mark a link as used. False: it was used meanwhile."""
    changed = tx.run(
        "UPDATE console_link SET used_at_us = :now WHERE id = :id AND used_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )
    return changed == 1


def put_session(tx: Transaction, value: ConsoleSession, digest: str) -> None:
    tx.run_many(_SESSION.insert_with("digest"), [(digest, *_SESSION.row(value))])


def sessions(
    tx: Transaction,
    organisation: OrganisationId,
    member: MemberId | None,
    now: datetime,
    *,
    after: str,
    limit: int,
) -> tuple[ConsoleSession, ...]:
    """Open sessions of an organisation or of one member."""
    rows = tx.all(
        f"SELECT {_SESSION.names_in('s')} FROM console_session s JOIN member m ON m.id = s.member_id"
        " WHERE m.organisation_id = :organisation AND (:member = '' OR s.member_id = :member)"
        " AND s.revoked_at_us IS NULL AND s.expires_at_us > :now AND s.id > :after"
        " ORDER BY s.id LIMIT :limit",
        organisation=organisation,
        member=member or "",
        now=microseconds(now),
        after=after,
        limit=limit,
    )
    return tuple(_SESSION.value(row) for row in rows)


def newest_sessions(
    tx: Transaction, member: MemberId, now: datetime, *, limit: int
) -> tuple[ConsoleSession, ...]:
    """Open sessions of one member, newest first."""
    rows = tx.all(
        f"SELECT {_SESSION.names} FROM console_session WHERE member_id = :member"
        " AND revoked_at_us IS NULL AND expires_at_us > :now ORDER BY id DESC LIMIT :limit",
        member=member,
        now=microseconds(now),
        limit=limit,
    )
    return tuple(_SESSION.value(row) for row in rows)


def session(tx: Transaction, organisation: OrganisationId, id: str) -> ConsoleSession | None:
    row = tx.one(
        f"SELECT {_SESSION.names_in('s')} FROM console_session s JOIN member m ON m.id = s.member_id"
        " WHERE s.id = :id AND m.organisation_id = :organisation",
        id=id,
        organisation=organisation,
    )
    return _SESSION.value(row) if row else None


def revoke_session(tx: Transaction, id: str, now: datetime) -> None:
    tx.run(
        "UPDATE console_session SET revoked_at_us = :now WHERE id = :id AND revoked_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )


def end_other_sessions(tx: Transaction, member: MemberId, kept: str, now: datetime) -> None:
    """End the sessions of a member, and their unused links, except one session."""
    tx.run(
        "UPDATE console_session SET revoked_at_us = :now"
        " WHERE member_id = :member AND id <> :kept AND revoked_at_us IS NULL",
        now=microseconds(now),
        member=member,
        kept=kept,
    )
    tx.run("DELETE FROM console_link WHERE member_id = :member", member=member)


def forget_member(tx: Transaction, member: MemberId, now: datetime) -> None:
    """End all sessions of a removed member, and delete the password and links."""
    end_other_sessions(tx, member, "", now)
    tx.run("DELETE FROM console_login WHERE member_id = :member", member=member)


def forget_before(tx: Transaction, time: datetime) -> int:
    """Delete sessions and links that ended before this time."""
    us = microseconds(time)
    links = tx.run("DELETE FROM console_link WHERE expires_at_us < :time", time=us)
    return links + tx.run("DELETE FROM console_session WHERE expires_at_us < :time", time=us)
