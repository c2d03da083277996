"""All SQL for the installation: one row with its id."""

from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.storage.database import Transaction


def installation_id(tx: Transaction) -> str | None:
    row = tx.one("SELECT id FROM installation")
    return str(row[0]) if row else None


def put_installation(tx: Transaction, id: str, now: datetime) -> None:
    tx.run("INSERT INTO installation (id, made_at_us) VALUES (:id, :now)", id=id, now=microseconds(now))
