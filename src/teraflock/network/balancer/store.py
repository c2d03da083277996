"""All SQL for load balancers and their backends."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from teraflock.base.clock import at_microseconds
from teraflock.network.balancer.model import Balancer, BalancerHost, BalancerId, BalancerPlace, Target
from teraflock.network.balancer.rules import BACKENDS_MAX, is_reachable
from teraflock.network.rules import number_of
from teraflock.network.store import addresses_from
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table, add_missing_row, number
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.project.store import IN_ORGANISATION

_BALANCER: Final = Table("balancer", Balancer)
_TARGET: Final = "i.id, i.name, i.site, i.host_id, i.address, i.more_addresses, p.network_number"
_PROJECT: Final = " JOIN project p ON p.id = i.project_id"
_NAMED: Final = (
    f"SELECT l.id, l.site, {_TARGET} FROM balancer l JOIN balancer_backend b ON b.balancer_id = l.id"
    f" JOIN instance i ON i.id = b.instance_id{_PROJECT}"
)
_LABELLED: Final = (
    f"SELECT l.id, l.site, {_TARGET} FROM balancer l JOIN instance_label t ON t.project_id = l.project_id"
    f" AND t.key = l.label_key AND t.value = l.label_value JOIN instance i ON i.id = t.instance_id{_PROJECT}"
)
_LIVE: Final = "i.phase <> 'gone' AND i.address IS NOT NULL"


def of_project(tx: Transaction, project: ProjectId) -> tuple[Balancer, ...]:
    """By name. Those that end are included: their name, address and port are still in use."""
    return _BALANCER.all(tx, "WHERE project_id = :project ORDER BY name", project=project)


def host_addresses(tx: Transaction, project: ProjectId) -> Mapping[str, str]:
    """The addresses of the hosts of a project's balancers, by id."""
    rows = tx.all(
        "SELECT h.id, h.address FROM balancer b JOIN host h ON h.id = b.host_id WHERE b.project_id = :project",
        project=project,
    )
    return dict(rows)


def instance(tx: Transaction, project: ProjectId, ref: str) -> Target | None:
    row = tx.one(
        f"SELECT {_TARGET} FROM instance i{_PROJECT} WHERE i.project_id = :project AND i.phase <> 'gone'"
        " AND (i.id = :ref OR i.name = :ref)",
        project=project,
        ref=ref,
    )
    return _target(row) if row else None


def labelled(tx: Transaction, project: ProjectId, key: str, value: str) -> tuple[Target, ...]:
    rows = tx.all(
        f"SELECT {_TARGET} FROM instance_label t JOIN instance i ON i.id = t.instance_id{_PROJECT}"
        f" WHERE t.project_id = :project AND t.key = :key AND t.value = :value AND {_LIVE} ORDER BY i.id",
        project=project,
        key=key,
        value=value,
    )
    return tuple(map(_target, rows))


def hosts(tx: Transaction) -> tuple[BalancerHost, ...]:
    """All own hosts that exist, by id."""
    rows = tx.all(
        "SELECT id, site, state, drain_at_us, seen_at_us FROM host WHERE kind = 'own' AND state <> 'gone' ORDER BY id"
    )
    return tuple(
        BalancerHost(
            id=id,
            site=site,
            state=state,
            drain_at=None if drain_us is None else at_microseconds(drain_us),
            seen_at=at_microseconds(seen_us),
        )
        for id, site, state, drain_us, seen_us in rows
    )


def region_of_host(tx: Transaction, id: str) -> str:
    row = tx.one("SELECT region FROM host WHERE id = :id", id=id)
    return str(row[0]) if row else ""


def by_id_in_all_projects(tx: Transaction, id: BalancerId) -> Balancer | None:
    return _BALANCER.one(tx, "WHERE id = :id", id=id)


def locked_in_all_projects(tx: Transaction, id: BalancerId) -> Balancer | None:
    """Like `by_id_in_all_projects`, and nobody else can change it until the transaction ends."""
    return _BALANCER.lock(tx, "WHERE id = :id", id=id)


def sequence_in_all_projects(tx: Transaction, id: str) -> int | None:
    """The sequence of a balancer's newest event. None: it does not exist, or has no event yet."""
    row = tx.one("SELECT sequence FROM balancer WHERE id = :id AND sequence > 0", id=id)
    return int(row[0]) if row else None


def set_place(tx: Transaction, balancer: Balancer) -> None:
    """Store where a balancer is, and the sequence of the event that says so."""
    tx.run(
        "UPDATE balancer SET site = :site, host_id = :host, published = :published, sequence = :sequence"
        " WHERE id = :id",
        site=balancer.site,
        host=balancer.host_id,
        published=balancer.published,
        sequence=balancer.sequence,
        id=balancer.id,
    )


def named(tx: Transaction, id: BalancerId) -> set[str]:
    """The instances that were named as backends."""
    rows = tx.all("SELECT instance_id FROM balancer_backend WHERE balancer_id = :id", id=id)
    return {row[0] for row in rows}


def targets(
    tx: Transaction, project: ProjectId, linked: Collection[str]
) -> Mapping[BalancerId, tuple[Target, ...]]:
    """The backends of each balancer of a project, named and by label, in the order of their names.

    A balancer reaches the instances of its own site, and those of `linked` sites if its own is one of them.
    """
    where = f"l.project_id = :project AND {_LIVE}"
    return _targets(
        tx.all(f"{_NAMED} WHERE {where} UNION {_LABELLED} WHERE {where}", project=project), linked
    )


def targets_in_all_projects(
    tx: Transaction, linked: Collection[str]
) -> Mapping[BalancerId, tuple[Target, ...]]:
    return _targets(tx.all(f"{_NAMED} WHERE {_LIVE} UNION {_LABELLED} WHERE {_LIVE}"), linked)


def in_all_projects(tx: Transaction, project: str = "") -> list[tuple[Balancer, BalancerPlace]]:
    """Every balancer, or those of one project, with the network, project and host that it is in."""
    rows = tx.all(
        f"SELECT {_BALANCER.names_in('b')}, n.number, n.engine_key, p.name, h.name,"
        " EXISTS (SELECT 1 FROM address a WHERE a.target_id = b.id) FROM balancer b"
        " JOIN project p ON p.id = b.project_id JOIN network n ON n.number = p.network_number"
        " JOIN host h ON h.id = b.host_id WHERE :project = '' OR b.project_id = :project ORDER BY b.id",
        project=project,
    )
    return [(_BALANCER.value(row[:-5]), _place(*row[-5:])) for row in rows]


def without_events_in_all_projects(tx: Transaction) -> tuple[Balancer, ...]:
    """Balancers from before they had events."""
    return _BALANCER.all(tx, "WHERE sequence = 0 ORDER BY id")


def projects_with_some(tx: Transaction) -> set[str]:
    return {row[0] for row in tx.all("SELECT DISTINCT project_id FROM balancer")}


def published_ports(tx: Transaction, host: str) -> set[int]:
    """The ports of a host that lead to balancers."""
    rows = tx.all("SELECT published FROM balancer WHERE host_id = :host AND published IS NOT NULL", host=host)
    return {int(row[0]) for row in rows}


def count_published(tx: Transaction, project: ProjectId) -> int:
    return _count(tx, "project_id = :id", project)


def count_published_of_organisation(tx: Transaction, organisation: OrganisationId) -> int:
    return _count(tx, f"project_id IN ({IN_ORGANISATION})", organisation)


def insert(tx: Transaction, balancer: Balancer) -> None:
    _BALANCER.add(tx, balancer)


def add_backends(tx: Transaction, id: BalancerId, instances: Iterable[str]) -> None:
    for instance_id in instances:
        add_missing_row(tx, "balancer_backend", balancer_id=id, instance_id=instance_id)


def remove_backends(tx: Transaction, id: BalancerId, instances: Iterable[str]) -> None:
    for instance_id in instances:
        tx.run(
            "DELETE FROM balancer_backend WHERE balancer_id = :id AND instance_id = :instance",
            id=id,
            instance=instance_id,
        )


def end(tx: Transaction, id: BalancerId) -> None:
    tx.run("UPDATE balancer SET ending = 1 WHERE id = :id", id=id)


def end_those_of_removed_projects(tx: Transaction) -> int:
    return tx.run(
        "UPDATE balancer SET ending = 1 WHERE ending = 0"
        " AND project_id IN (SELECT id FROM project WHERE removed_at_us IS NOT NULL)"
    )


def remove(tx: Transaction, id: BalancerId) -> None:
    tx.run("DELETE FROM balancer_backend WHERE balancer_id = :id", id=id)
    tx.run("DELETE FROM balancer WHERE id = :id", id=id)


def forget_deleted_instances(tx: Transaction) -> int:
    return tx.run(
        "DELETE FROM balancer_backend WHERE instance_id IN (SELECT b.instance_id FROM balancer_backend b"
        " JOIN instance i ON i.id = b.instance_id WHERE i.phase = 'gone')"
    )


def has_leftovers(tx: Transaction) -> bool:
    """Whether a backend was deleted, the project of a balancer removed, or a balancer has no event yet."""
    row = tx.one(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM balancer_backend b JOIN instance i ON i.id = b.instance_id"
        " WHERE i.phase = 'gone') OR EXISTS (SELECT 1 FROM balancer b JOIN project p ON p.id = b.project_id"
        " WHERE b.ending = 0 AND p.removed_at_us IS NOT NULL) OR EXISTS (SELECT 1 FROM balancer WHERE sequence = 0)"
    )
    return row is not None


def _count(tx: Transaction, where: str, id: str) -> int:
    return number(tx, f"SELECT COUNT(*) FROM balancer WHERE published IS NOT NULL AND {where}", id=id)


def _targets(rows: Iterable[Row], linked: Collection[str]) -> Mapping[BalancerId, tuple[Target, ...]]:
    found: dict[BalancerId, list[Target]] = defaultdict(list)
    for id, site, *rest in rows:
        target = _target(rest)
        if is_reachable(site, target.site, linked):
            found[BalancerId(id)].append(target)
    return {
        id: tuple(sorted(each, key=lambda target: (target.name, target.instance_id))[:BACKENDS_MAX])
        for id, each in found.items()
    }


def _place(network: int, key: str, project: str, host: str, is_public: int) -> BalancerPlace:
    return BalancerPlace(network, key, project, host, bool(is_public))


def _target(row: Iterable[object]) -> Target:
    id, name, site, host_id, first, more, network = row
    return Target(
        instance_id=str(id),
        name=str(name),
        site=str(site),
        host_id=host_id,  # type: ignore[arg-type]
        address=_nearest(str(first), str(more), network) if first else None,
    )


def _nearest(first: str, more: str, network: object) -> str:
    """The address in the network `default` of the project, where balancers are, or else the first one."""
    return next((each for each in (first, *addresses_from(more)) if number_of(each) == network), first)
