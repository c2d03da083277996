"""Queries across all projects, for operators and the loops. A tenant's request never reaches them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.clock import microseconds
from teraflock.fleet.model import HostId
from teraflock.instance.model import Instance, InstanceId, Located, LocatedFilter, Spec
from teraflock.instance.states import ENDED, LOST_WITH_HOST, WITH_DISK
from teraflock.instance.store import COLUMNS, COLUMNS_OF_I, instances_from, views_by_id
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import among
from teraflock.tenant.model import OrganisationId, ProjectId

_spec: Final = msgspec.json.Decoder(Spec).decode


def located_in_all_projects(
    tx: Transaction, only: LocatedFilter, *, after: str = "", limit: int
) -> tuple[Located, ...]:
    """Instances of every tenant, oldest first. Those that are gone are found by id only."""
    rows = tx.all(
        "SELECT i.id, p.name, o.id, o.name FROM instance i JOIN project p ON p.id = i.project_id"
        " JOIN organisation o ON o.id = p.organisation_id WHERE i.id > :after"
        " AND (:organisation = '' OR o.id = :organisation) AND (:project = '' OR p.id = :project)"
        " AND (:host = '' OR i.host_id = :host) AND (:phase = '' OR i.phase = :phase)"
        " AND (i.id = :ref OR (i.phase <> 'gone' AND (:ref = '' OR i.name = :ref))) ORDER BY i.id LIMIT :limit",
        after=after,
        limit=limit,
        **msgspec.structs.asdict(only),
    )
    views = views_by_id(tx, [row[0] for row in rows]) if rows else ()
    return tuple(
        Located(view=view, project_name=project, organisation_id=OrganisationId(id), organisation_name=name)
        for (_, project, id, name), view in zip(rows, views, strict=True)
    )


def to_end_in_organisation(
    tx: Transaction, organisation: OrganisationId, *, deleted: bool, limit: int
) -> list[tuple[ProjectId, InstanceId]]:
    """Instances that a suspended organisation still wants to run, or that an organisation to be deleted still has."""
    wanted = "i.wanted <> 'gone'" if deleted else "i.wanted = 'running' AND i.phase <> 'failed'"
    rows = tx.all(
        "SELECT i.project_id, i.id FROM instance i JOIN project p ON p.id = i.project_id"
        f" WHERE p.organisation_id = :organisation AND i.phase <> 'gone' AND {wanted} ORDER BY i.id LIMIT :limit",
        organisation=organisation,
        limit=limit,
    )
    return [(ProjectId(row[0]), InstanceId(row[1])) for row in rows]


def by_id_in_all_projects(tx: Transaction, id: InstanceId) -> Instance | None:
    rows = tx.all(f"SELECT {COLUMNS} FROM instance WHERE id = :id", id=id)
    return instances_from(tx, rows)[0] if rows else None


def with_volumes_in_all_projects(tx: Transaction) -> tuple[Instance, ...]:
    """The instances that volumes are attached to."""
    rows = tx.all(
        f"SELECT {COLUMNS} FROM instance WHERE id IN (SELECT instance_id FROM volume WHERE instance_id <> '')"
    )
    return instances_from(tx, rows)


def datasets_by_host_in_all_projects(tx: Transaction) -> list[tuple[str, str, str]]:
    """Site, host and dataset of all existing instances on own hosts that have datasets."""
    rows = tx.all(
        "SELECT i.site, h.name, i.spec FROM instance i JOIN host h ON h.id = i.host_id"
        " WHERE i.phase <> 'gone' AND h.kind = 'own' AND i.spec LIKE :mark",
        mark='%"id":"dat_%',
    )
    return [(site, host, each.id) for site, host, spec in rows for each in _spec(spec).data]


def name_in_all_projects(tx: Transaction, id: str) -> str | None:
    """The name of an instance, also if it is gone."""
    row = tx.one("SELECT name FROM instance WHERE id = :id", id=id)
    return str(row[0]) if row else None


def site_in_all_projects(tx: Transaction, id: str) -> str:
    """The site where an instance runs or ran. Empty: unknown."""
    row = tx.one("SELECT site FROM instance WHERE id = :id", id=id)
    return str(row[0]) if row else ""


def changes_in_all_projects(tx: Transaction) -> Row | None:
    """Two equal answers: no instance was added or changed in between. Rows stay, and their versions only grow. Leases
    are not counted."""
    return tx.one("SELECT COUNT(*), SUM(version) FROM instance")


def on_site_in_all_projects(tx: Transaction, site: str) -> list[Row]:
    """All instances on the hosts of a site, with these columns: id, phase, wanted, host name (empty for a rented host),
    whether it has an operation or its host is away, vCPUs, RAM, disk, and for a rented machine creation time and id.
    """
    return tx.all(
        "SELECT i.id, i.phase, i.wanted, CASE WHEN h.kind = 'own' THEN h.name ELSE '' END,"
        " CASE WHEN i.operation = '' AND i.settled = 1 AND h.state <> 'away' THEN 0 ELSE 1 END,"
        " i.vcpus, i.ram_bytes, i.disk_bytes, h.made_at_us, h.remote_id"
        " FROM instance i JOIN host h ON h.id = i.host_id WHERE i.site = :site AND h.site = :site",
        site=site,
    )


def on_host_in_all_projects(tx: Transaction, host_id: HostId) -> tuple[Instance, ...]:
    return instances_from(tx, tx.all(f"SELECT {COLUMNS} FROM instance WHERE host_id = :id", id=host_id))


def lock_on_host_in_all_projects(tx: Transaction, host_id: HostId) -> tuple[Instance, ...]:
    """Like `on_host_in_all_projects`, but lock the instances until the transaction ends."""
    rows = tx.lock(f"SELECT {COLUMNS} FROM instance WHERE host_id = :id ORDER BY id", id=host_id)
    return instances_from(tx, rows)


def on_lost_hosts_in_all_projects(tx: Transaction, seen_before: datetime) -> tuple[Instance, ...]:
    """Instances that are away or starting, on own hosts that were not seen since a certain time."""
    rows = tx.all(
        f"SELECT {COLUMNS_OF_I} FROM instance i JOIN host h ON h.id = i.host_id"
        f" WHERE i.phase IN {among(LOST_WITH_HOST)} AND h.kind = 'own' AND h.state = 'away' AND h.seen_at_us < :before"
        " ORDER BY i.id",
        before=microseconds(seen_before),
    )
    return instances_from(tx, rows)


def running_elsewhere_in_all_projects(tx: Transaction) -> tuple[Instance, ...]:
    """Running instances on own hosts, without an operation, with the restart policy `elsewhere`."""
    rows = tx.all(
        f"SELECT {COLUMNS_OF_I} FROM instance i JOIN host h ON h.id = i.host_id WHERE i.phase = 'running'"
        " AND i.operation = '' AND h.kind = 'own' AND i.spec LIKE :policy ORDER BY i.id",
        policy='%"restart_policy":"elsewhere"%',
    )
    return instances_from(tx, rows)


def away_in_work_in_all_projects(tx: Transaction, site: str) -> list[tuple[InstanceId, str]]:
    """Instances that are away during an operation, with the names of their hosts. Rented hosts have an empty name."""
    rows = tx.all(
        "SELECT i.id, CASE WHEN h.kind = 'own' THEN h.name ELSE '' END"
        " FROM instance i JOIN host h ON h.id = i.host_id WHERE i.settled = 0"
        " AND i.phase = 'away' AND i.operation <> '' AND h.site = :site ORDER BY i.id",
        site=site,
    )
    return [(InstanceId(row[0]), row[1]) for row in rows]


def ids_known_in_all_projects(tx: Transaction, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The phases and sites of the ids that exist."""
    known = {}
    for id in ids:
        row = tx.one("SELECT phase, site FROM instance WHERE id = :id", id=id)
        if row:
            known[id] = (row[0], row[1])
    return known


def ids_on_engines_in_all_projects(tx: Transaction) -> list[str]:
    """The ids of instances that have a disk. Works with any schema version, because it is used before an update."""
    rows = tx.all(f"SELECT id FROM instance WHERE phase IN {among(WITH_DISK)} ORDER BY id")
    return [row[0] for row in rows]


def commands_running_in_all_projects(tx: Transaction) -> tuple[Instance, ...]:
    rows = tx.all(
        f"SELECT {COLUMNS} FROM instance WHERE access = 'command' AND phase = 'running' AND wanted = 'running'"
        " AND exit_code IS NULL AND operation = ''"
    )
    return instances_from(tx, rows)


def user_data_running_in_all_projects(tx: Transaction) -> tuple[Instance, ...]:
    rows = tx.all(
        f"SELECT {COLUMNS} FROM instance WHERE user_data_waits = 1 AND phase = 'running' AND wanted = 'running'"
        " AND operation = ''"
    )
    return instances_from(tx, rows)


def stopping_by_in_all_projects(tx: Transaction, until: datetime) -> tuple[Instance, ...]:
    """Instances that should run and whose time limit ends by then, the earliest first."""
    rows = tx.all(
        f"SELECT {COLUMNS} FROM instance WHERE stop_at_us <= :until AND wanted = 'running'"
        f" AND phase NOT IN {among(ENDED)} ORDER BY stop_at_us, id",
        until=microseconds(until),
    )
    return instances_from(tx, rows)


def count_by_phase_in_all_projects(tx: Transaction) -> dict[str, int]:
    return {row[0]: int(row[1]) for row in tx.all("SELECT phase, COUNT(*) FROM instance GROUP BY phase")}


def running_by_host_in_all_projects(
    tx: Transaction, host_ids: Sequence[HostId]
) -> dict[HostId, frozenset[str]]:
    """The ids of running instances on each of these hosts."""
    rows = tx.all(
        "SELECT host_id, id FROM instance WHERE phase = 'running' AND host_id >= :first AND host_id <= :last",
        first=min(host_ids),
        last=max(host_ids),
    )
    found: dict[HostId, set[str]] = {}
    for host_id, id in rows:
        found.setdefault(HostId(host_id), set()).add(id)
    return {host_id: frozenset(ids) for host_id, ids in found.items()}
