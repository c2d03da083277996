"""All SQL for peerings.

A row is the consent of one side, and names the other by its project and name. So a row can be written without reading
whether the other side exists. When a network is deleted, its rows and those that name it are deleted with it: a new
network of the same name has to be agreed on again.
"""

from datetime import datetime
from typing import Final

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.network.model import ProjectNetwork
from teraflock.network.peering.model import Peering, PeeringState
from teraflock.network.rules import subnet
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import add_missing_row, number
from teraflock.tenant.model import ProjectId

OFFERS_MAX: Final = 100
"""Shown of a network. Anyone can send requests."""
_FAR: Final = (
    " JOIN network n ON {far} AND n.removed_at_us IS NULL"
    " JOIN project p ON p.id = n.project_id AND p.removed_at_us IS NULL"
)


def of_network(tx: Transaction, network: ProjectNetwork) -> tuple[Peering, ...]:
    """The peerings of a network, and the requests of others."""
    agreed = _agreed(tx, network)
    rows = tx.all(
        "SELECT peer_project_id, peer_name, created_at_us FROM network_peering WHERE network_id = :id",
        id=network.id,
    )
    own = {(row[0], row[1]): int(row[2]) for row in rows}
    found = [
        _peering(
            key, agreed.get(key), at_us, PeeringState.ACTIVE if key in agreed else PeeringState.REQUESTED
        )
        for key, at_us in own.items()
    ]
    found += [
        _peering(key, row, int(row[4]), PeeringState.OFFERED) for key, row in agreed.items() if key not in own
    ]
    return tuple(sorted(found, key=lambda each: (each.peer_project, each.peer_project_id, each.peer_network)))


def _agreed(tx: Transaction, network: ProjectNetwork) -> dict[tuple[str, str], Row]:
    """The other sides that agreed, by project and name: also with the project's name, the number, and since when."""
    rows = tx.all(
        "SELECT n.project_id, n.name, p.name, n.number, w.created_at_us FROM network_peering w"
        f"{_FAR.format(far='n.id = w.network_id')}"
        " WHERE w.peer_project_id = :project AND w.peer_name = :name ORDER BY w.created_at_us LIMIT :most",
        project=network.project_id,
        name=network.name,
        most=OFFERS_MAX,
    )
    return {(row[0], row[1]): row for row in rows}


def _peering(key: tuple[str, str], far: Row | None, at_us: int, state: PeeringState) -> Peering:
    return Peering(
        peer_project_id=key[0],
        peer_project=far[2] if far else "",
        peer_network=key[1],
        peer_cidr=str(subnet(int(far[3]))) if far and state == PeeringState.ACTIVE else "",
        state=state,
        since=at_microseconds(at_us),
    )


def agree(tx: Transaction, network: ProjectNetwork, peer: ProjectId, name: str, now: datetime) -> None:
    add_missing_row(
        tx,
        "network_peering",
        network_id=network.id,
        peer_project_id=peer,
        peer_name=name,
        created_at_us=microseconds(now),
    )


def count(tx: Transaction, network: ProjectNetwork) -> int:
    return number(tx, "SELECT COUNT(*) FROM network_peering WHERE network_id = :id", id=network.id)


def end(tx: Transaction, network: ProjectNetwork, peer: str, name: str) -> int:
    """Remove the consent of both sides. Return how many there were."""
    own = tx.run(
        "DELETE FROM network_peering WHERE network_id = :id AND peer_project_id = :peer AND peer_name = :name",
        id=network.id,
        peer=peer,
        name=name,
    )
    return own + tx.run(
        "DELETE FROM network_peering WHERE peer_project_id = :project AND peer_name = :own AND network_id IN"
        " (SELECT id FROM network WHERE project_id = :peer AND name = :name)",
        project=network.project_id,
        own=network.name,
        peer=peer,
        name=name,
    )


def end_all(tx: Transaction, network: ProjectNetwork) -> None:
    """End the peerings of a network that is deleted."""
    tx.run("DELETE FROM network_peering WHERE network_id = :id", id=network.id)
    tx.run(
        "DELETE FROM network_peering WHERE peer_project_id = :project AND peer_name = :name",
        project=network.project_id,
        name=network.name,
    )


def active_in_all_projects(tx: Transaction) -> list[tuple[int, int]]:
    """The numbers of every two networks that are peered, the lower first."""
    rows = tx.all(
        "SELECT a.number, n.number FROM network_peering w"
        " JOIN network a ON a.id = w.network_id AND a.removed_at_us IS NULL"
        " JOIN project o ON o.id = a.project_id AND o.removed_at_us IS NULL"
        f"{_FAR.format(far='n.project_id = w.peer_project_id AND n.name = w.peer_name')}"
        " JOIN network_peering b ON b.network_id = n.id AND b.peer_project_id = a.project_id AND b.peer_name = a.name"
        " WHERE a.number < n.number ORDER BY a.number, n.number"
    )
    return [(int(row[0]), int(row[1])) for row in rows]
