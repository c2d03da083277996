"""A create that is asked for twice with one key is done once: what was made is kept beside its key.

The row is written in the transaction that makes the thing, so one is never there without the other.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

import msgspec

from teraflock.base.clock import microseconds
from teraflock.base.errors import Conflict
from teraflock.storage.database import Transaction


class KeyReused(Conflict):
    """The same key came with another request."""

    code = "idempotency_key_reused"


def digest_of(*parts: object) -> str:
    return sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def made_before(tx: Transaction, scope: str, key: str, digest: str) -> tuple[str, ...] | None:
    """The ids of what was made with this key; None where it is new."""
    if not key:
        return None
    row = tx.one(
        "SELECT digest, answer FROM idempotency WHERE scope = :scope AND key = :key", scope=scope, key=key
    )
    if row is None:
        return None
    if row[0] != digest:
        raise KeyReused(
            "This Idempotency-Key was used before, for another request",
            hint="Use a new key for every new request; the same one only to repeat it",
        )
    return msgspec.json.decode(row[1], type=tuple[str, ...])


def remember(tx: Transaction, scope: str, key: str, digest: str, ids: Sequence[str], now: datetime) -> None:
    if key:
        tx.run(
            "INSERT INTO idempotency (scope, key, digest, answer, created_at_us)"
            " VALUES (:scope, :key, :digest, :answer, :at)",
            scope=scope,
            key=key,
            digest=digest,
            answer=msgspec.json.encode(ids).decode(),
            at=microseconds(now),
        )
