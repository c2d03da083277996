"""All SQL about copies that were left behind on a host when their instances were created again elsewhere.

Nobody gets the addresses of such a copy: it may still run. Both are forgotten when the host is back without the copy. A
host that was removed as lost reaches no network any more, so only the copy is remembered, in case it joins again.
"""

from collections.abc import Sequence
from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.fleet.model import HostId
from teraflock.storage.database import Transaction
from teraflock.storage.table import in_list, put_row


def note(
    tx: Transaction, instance_id: str, host_id: str, project: str, addresses: Sequence[str], now: datetime
) -> None:
    put_row(
        tx,
        "left_behind",
        "instance_id host_id",
        instance_id=instance_id,
        host_id=host_id,
        project_id=project,
        address=" ".join(addresses),
        left_at_us=microseconds(now),
    )


def on_hosts(tx: Transaction, host_ids: Sequence[HostId]) -> list[tuple[str, str]]:
    """The instance and the host of each copy on these hosts."""
    if not host_ids:
        return []
    marks, values = in_list(host_ids)
    rows = tx.all(
        f"SELECT instance_id, host_id FROM left_behind WHERE host_id IN ({marks}) ORDER BY host_id, instance_id",
        **values,
    )
    return [(row[0], row[1]) for row in rows]


def free_addresses(tx: Transaction, host_id: str) -> None:
    """Let others have the addresses of all copies on a host that has no link to any network any more."""
    tx.run("UPDATE left_behind SET address = '' WHERE host_id = :host", host=host_id)


def forget(tx: Transaction, copies: Sequence[tuple[str, str]]) -> None:
    tx.run_many("DELETE FROM left_behind WHERE instance_id = :instance AND host_id = :host", copies)
