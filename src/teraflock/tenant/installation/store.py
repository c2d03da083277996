"""All SQL for the installation: one row with its id."""

from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.storage.database import Transaction
from teraflock.storage.table import add_row


def installation_id(tx: Transaction) -> str | None:
    row = tx.one("SELECT id FROM installation")
    return str(row[0]) if row else None


def put_installation(tx: Transaction, id: str, now: datetime) -> None:
    add_row(tx, "installation", id=id, made_at_us=microseconds(now))
