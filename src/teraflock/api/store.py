"""Stored responses of requests with an `Idempotency-Key`: table `idempotency`."""

from datetime import datetime

import msgspec

from teraflock.base.clock import microseconds
from teraflock.storage.database import Transaction
from teraflock.storage.table import add_missing_row


class KeptAnswer(msgspec.Struct, frozen=True):
    digest: str
    answer: str


def kept(tx: Transaction, scope: str, key: str) -> KeptAnswer | None:
    row = tx.one(
        "SELECT digest, answer FROM idempotency WHERE scope = :scope AND key = :key", scope=scope, key=key
    )
    return KeptAnswer(*row) if row else None


def reserve(tx: Transaction, scope: str, key: str, digest: str, now: datetime) -> bool:
    """Claim a key for the request in this transaction. False: the key already has a response.

    Waits for another transaction that has claimed it and not ended yet.
    """
    return add_missing_row(
        tx, "idempotency", scope=scope, key=key, digest=digest, answer="", created_at_us=microseconds(now)
    )


def keep_answer(tx: Transaction, scope: str, key: str, answer: str) -> None:
    """Store the response for a key that this transaction claimed."""
    tx.run(
        "UPDATE idempotency SET answer = :answer WHERE scope = :scope AND key = :key",
        answer=answer,
        scope=scope,
        key=key,
    )


def forget_before(tx: Transaction, time: datetime) -> int:
    return tx.run(
        "DELETE FROM idempotency WHERE created_at_us < :time_us",
        time_us=microseconds(time),
    )
