"""The kept answers of creating requests: table `idempotency`."""

from datetime import datetime

import msgspec

from teraflock.base.clock import microseconds
from teraflock.storage.database import Transaction


class Kept(msgspec.Struct, frozen=True):
    digest: str
    answer: str


def kept(tx: Transaction, scope: str, key: str) -> Kept | None:
    row = tx.one(
        "SELECT digest, answer FROM idempotency WHERE scope = :scope AND key = :key", scope=scope, key=key
    )
    return Kept(*row) if row else None


def keep(tx: Transaction, scope: str, key: str, row: Kept, now: datetime) -> None:
    tx.run(
        "INSERT INTO idempotency (scope, key, digest, answer, created_at_us)"
        " VALUES (:scope, :key, :digest, :answer, :now_us)",
        scope=scope,
        key=key,
        digest=row.digest,
        answer=row.answer,
        now_us=microseconds(now),
    )


def forget_before(tx: Transaction, time: datetime) -> int:
    return tx.run(
        "DELETE FROM idempotency WHERE created_at_us < :time_us",
        time_us=microseconds(time),
    )
