"""All SQL about the ports of hosts that lead to ports of guests."""

from collections.abc import Sequence

from teraflock.fleet.model import HostId
from teraflock.storage.database import Transaction
from teraflock.storage.table import add_row, in_list


def taken_ports(tx: Transaction, host_id: HostId) -> set[int]:
    return {row[0] for row in tx.all("SELECT port FROM host_port WHERE host_id = :host", host=host_id)}


def take_port(tx: Transaction, host_id: HostId, port: int, guest_port: int, instance_id: str) -> None:
    add_row(tx, "host_port", host_id=host_id, port=port, guest_port=guest_port, instance_id=instance_id)


def release_ports(tx: Transaction, instance_id: str) -> None:
    tx.run("DELETE FROM host_port WHERE instance_id = :id", id=instance_id)


def held_by(tx: Transaction, instance_ids: Sequence[str]) -> list[tuple[str, int, int]]:
    """The instance, host port and guest port of each port that these instances hold, sorted."""
    marks, values = in_list(instance_ids)
    rows = tx.all(
        f"SELECT instance_id, port, guest_port FROM host_port WHERE instance_id IN ({marks})", **values
    )
    return sorted((row[0], row[1], row[2]) for row in rows)
