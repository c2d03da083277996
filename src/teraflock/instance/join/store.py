"""All SQL about invitations and joined hosts. They belong to the installation."""

from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.instance.join.model import Invitation, JoinedHost
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, number

INVITATION: Final = Table("host_invitation", Invitation)
JOINED: Final = Table("joined_host", JoinedHost)


def insert_invitation(tx: Transaction, invitation: Invitation) -> None:
    tx.run_many(INVITATION.insert, [INVITATION.row(invitation)])


def invitation(tx: Transaction, token_hash: str) -> Invitation | None:
    return INVITATION.one(tx, "WHERE token_hash = :hash", hash=token_hash)


def open_invitations(tx: Transaction, now: datetime) -> int:
    """How many invitations can still be used."""
    return number(
        tx, "SELECT COUNT(*) FROM host_invitation WHERE expires_at_us > :now", now=microseconds(now)
    )


def use_invitation(tx: Transaction, token_hash: str, key_hash: str, host: str) -> None:
    tx.run(
        "UPDATE host_invitation SET key_hash = :key, host = :host WHERE token_hash = :hash",
        key=key_hash,
        host=host,
        hash=token_hash,
    )


def forget_invitations(tx: Transaction, before: datetime) -> None:
    tx.run("DELETE FROM host_invitation WHERE expires_at_us < :before", before=microseconds(before))


def insert(tx: Transaction, host: JoinedHost) -> None:
    tx.run_many(JOINED.insert, [JOINED.row(host)])


def joined(tx: Transaction) -> tuple[JoinedHost, ...]:
    return tuple(JOINED.value(row) for row in tx.all(f"{JOINED.select} ORDER BY name"))


def is_joined(tx: Transaction, name: str) -> bool:
    return tx.one("SELECT 1 FROM joined_host WHERE name = :name", name=name) is not None


def remove(tx: Transaction, name: str) -> None:
    tx.run("DELETE FROM joined_host WHERE name = :name", name=name)
