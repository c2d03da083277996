"""All SQL about reserved hosts."""

from collections.abc import Collection

from teraflock.storage.database import Transaction
from teraflock.storage.table import add_row


def reserved(tx: Transaction) -> dict[str, str]:
    """The queued launch of each reserved host, by the id of the host."""
    return {row[0]: row[1] for row in tx.all("SELECT host_id, queued_id FROM host_reservation")}


def reserve(tx: Transaction, queued_id: str, host_ids: Collection[str]) -> None:
    """Reserve these hosts and no others: only one queued launch has reservations at a time."""
    tx.run("DELETE FROM host_reservation")
    for id in sorted(host_ids):
        add_row(tx, "host_reservation", host_id=id, queued_id=queued_id)
