"""All SQL for published ports."""

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from teraflock.network.balancer.store import published_ports
from teraflock.network.published_port.model import PublishedPort, Publisher, ShownPort
from teraflock.network.walls import Published
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, among, number
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.project.store import IN_ORGANISATION

_PORT: Final = Table("published_port", PublishedPort)


def publisher(tx: Transaction, project: ProjectId, ref: str) -> Publisher | None:
    row = tx.one(
        "SELECT id, name, host_id, address FROM instance"
        " WHERE project_id = :project AND phase <> 'gone' AND (id = :ref OR name = :ref)",
        project=project,
        ref=ref,
    )
    return Publisher(id=row[0], name=row[1], host_id=row[2], address=row[3]) if row else None


def of_project(tx: Transaction, project: ProjectId, *, instance: str = "") -> tuple[ShownPort, ...]:
    """The published ports of a project, or of one instance by id or name."""
    rows = tx.all(
        f"SELECT {_PORT.names_in('p')}, i.name, h.address FROM published_port p"
        " JOIN instance i ON i.id = p.instance_id JOIN host h ON h.id = p.host_id"
        " WHERE p.project_id = :project AND i.phase <> 'gone'"
        " AND (:ref = '' OR i.id = :ref OR i.name = :ref) ORDER BY i.name, p.guest_port",
        project=project,
        ref=instance,
    )
    return tuple(
        ShownPort(published=_PORT.value(row[:-2]), instance=row[-2], host_address=row[-1]) for row in rows
    )


def taken(tx: Transaction, host: str) -> set[int]:
    """The ports of a host that lead to instances or balancers."""
    rows = tx.all("SELECT port FROM published_port WHERE host_id = :host", host=host)
    return {int(row[0]) for row in rows} | published_ports(tx, host)


def count(tx: Transaction, project: ProjectId) -> int:
    return _count(tx, "project_id = :id", project)


def count_of_organisation(tx: Transaction, organisation: OrganisationId) -> int:
    return _count(tx, f"project_id IN ({IN_ORGANISATION})", organisation)


def _count(tx: Transaction, where: str, id: str) -> int:
    return number(tx, f"SELECT COUNT(*) FROM published_port WHERE {where}", id=id)


def insert(tx: Transaction, port: PublishedPort) -> None:
    _PORT.add(tx, port)


def remove(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM published_port WHERE id = :id", id=id)


def remove_all_of(tx: Transaction, project: ProjectId) -> None:
    tx.run("DELETE FROM published_port WHERE project_id = :project", project=project)


def in_all_projects(tx: Transaction) -> list[tuple[str, Published]]:
    """Every published port that leads somewhere, with its site."""
    rows = tx.all(
        "SELECT i.site, h.name, p.port, i.address, p.guest_port FROM published_port p"
        " JOIN instance i ON i.id = p.instance_id JOIN host h ON h.id = p.host_id"
        " WHERE i.address IS NOT NULL AND i.host_id = p.host_id ORDER BY h.name, p.port"
    )
    return [(row[0], Published(row[1], int(row[2]), row[3], int(row[4]))) for row in rows]


def astray_in_all_projects(
    tx: Transaction, ended: Collection[StrEnum]
) -> list[tuple[PublishedPort, str | None]]:
    """Ports of instances that are on another host now, with that host, or that are in an `ended` phase, with None."""
    rows = tx.all(
        f"SELECT {_PORT.names_in('p')}, i.phase, i.host_id FROM published_port p"
        " JOIN instance i ON i.id = p.instance_id"
        f" WHERE i.phase IN {among(ended)} OR i.host_id <> p.host_id ORDER BY p.id"
    )
    return [(_PORT.value(row[:-2]), None if row[-2] in ended else row[-1]) for row in rows]


def move(tx: Transaction, id: str, host: str, port: int) -> None:
    tx.run(
        "UPDATE published_port SET host_id = :host, port = :port WHERE id = :id", host=host, port=port, id=id
    )
