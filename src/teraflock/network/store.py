"""All SQL for networks. A project's number is the number of its network. Below 0: the network was removed."""

from typing import Final

from teraflock.network.fabric import NetworkMember
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId
from teraflock.tenant.project.store import set_network

TAKEN_DOWN: Final = -1


def take_down(tx: Transaction, project: ProjectId) -> None:
    """Free the project's part of the address range, because no engine uses it any more."""
    set_network(tx, project, TAKEN_DOWN)


def surroundings(tx: Transaction, instance: str) -> tuple[frozenset[int], tuple[str, ...]]:
    """The ports of an instance that its host opens, and the closed networks that its host lets guests into."""
    ports = tx.all(
        "SELECT guest_port FROM host_port WHERE instance_id = :id"
        " UNION SELECT guest_port FROM published_port WHERE instance_id = :id",
        id=instance,
    )
    row = tx.one(
        "SELECT h.allow_out FROM instance i JOIN host h ON h.id = i.host_id WHERE i.id = :id", id=instance
    )
    return frozenset(int(each[0]) for each in ports), tuple(row[0].split()) if row else ()


def members_in_all_projects(tx: Transaction) -> tuple[NetworkMember, ...]:
    """Every instance with an address, its site and its network."""
    rows = tx.all(
        "SELECT i.site, i.project_id, p.network_number, i.address FROM instance i"
        " JOIN project p ON p.id = i.project_id WHERE i.address IS NOT NULL ORDER BY i.address"
    )
    return tuple(NetworkMember(*row) for row in rows)
