"""All SQL about reserved hosts."""

from collections.abc import Collection

from teraflock.storage.database import Transaction


def reserved(tx: Transaction) -> dict[str, str]:
    """The queued launch of each reserved host, by the id of the host."""
    return {row[0]: row[1] for row in tx.all("SELECT host_id, queued_id FROM host_reservation")}


def reserve(tx: Transaction, queued_id: str, host_ids: Collection[str]) -> None:
    """Reserve these hosts and no others: only one queued launch has reservations at a time."""
    tx.run("DELETE FROM host_reservation")
    tx.run_many(
        "INSERT INTO host_reservation (host_id, queued_id) VALUES (:host, :queued)",
        [(id, queued_id) for id in sorted(host_ids)],
    )
