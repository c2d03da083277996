"""All SQL about instances, their snapshots and what they hold. `put` is the one writer: row and event together.

Reads name their project, but for those of the loops, which say `in_all_projects`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.clock import microseconds
from teraflock.fleet.model import GpuKind, HostId, HostKind
from teraflock.fleet.store import give_back, place_of, release_gpus, release_ports
from teraflock.instance.model import (
    HeldGpu,
    HeldPort,
    Instance,
    InstanceFilter,
    InstanceId,
    Located,
    Rented,
    View,
)
from teraflock.instance.rows import NAMES, instance_from, labels_text, values_of
from teraflock.instance.rules import deletes_itself
from teraflock.instance.states import Phase
from teraflock.instance.telling import RandomBytes, event_of, host_of, kinds_of
from teraflock.storage.database import Row, Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.project.store import IN_ORGANISATION
from teraflock.tenant.quota.rules import QuotaAmounts

COLUMNS: Final = ", ".join(NAMES)
_FROM_I: Final = ", ".join(f"i.{name}" for name in NAMES)
_VIEW: Final = (
    f"SELECT {_FROM_I}, h.kind, h.type, h.region, h.zone, h.login, h.remote_id, h.endpoints, h.name,"
    " h.address, h.simulated"
    " FROM instance i LEFT JOIN host h ON h.id = i.host_id"
)
_OF_HOST: Final = 10
"""How many columns of a view are its host's."""
_INSERT: Final = (
    f"INSERT INTO instance ({COLUMNS}, lease_owner) VALUES ({', '.join(':' + name for name in NAMES)}, '')"
)
_FIXED: Final = ("id", "project_id", "name", "image", "access", "spec", "created_at_us", "created_by")
_CHANGES: Final = ", ".join(f"{name} = :{name}" for name in NAMES if name not in _FIXED)
_UPDATE: Final = f"UPDATE instance SET {_CHANGES}, version = version + 1 WHERE id = :id"
_ENDPOINTS: Final = msgspec.json.Decoder(dict[int, tuple[str, int]])
EVERYTHING: Final = InstanceFilter()
VIEWS_KEPT: Final = 4096  # a few kB each


# Writing


def insert(tx: Transaction, instance: Instance, *, now: datetime, random_bytes: RandomBytes) -> Instance:
    """A new instance. What it holds on its host is taken by the caller, in the same transaction."""
    stored = msgspec.structs.replace(instance, sequence=1)
    tx.run(_INSERT, **values_of(stored))
    _insert_labels(tx, stored.id, stored.project_id, stored.labels)
    place = place_of(tx, stored.host_id or "")
    record_event(tx, event_of("instance.moved", None, stored, 1, now, random_bytes, place=place))
    return stored


def put(
    tx: Transaction,
    before: Instance,
    after: Instance,
    *,
    now: datetime,
    random_bytes: RandomBytes,
    last_seen: datetime | None = None,
) -> Instance:
    """Write what changed, give back what is no longer held, and leave an event for every change of phase or holding."""
    kinds = kinds_of(before, after)
    stored = msgspec.structs.replace(after, sequence=before.sequence + len(kinds))
    tx.run(
        _UPDATE,
        **{name: value for name, value in values_of(stored).items() if name not in _FIXED or name == "id"},
    )
    place = place_of(tx, host_of(before, stored)) if kinds else ("", 0)
    for sequence, kind in enumerate(kinds, start=before.sequence + 1):
        record_event(
            tx,
            event_of(kind, before, stored, sequence, now, random_bytes, place=place, last_seen=last_seen),
        )
    _give_back(tx, before, stored, now)
    if before.labels != stored.labels:
        _put_labels(tx, stored.id, stored.project_id, stored.labels)
    return stored


def tell_held(tx: Transaction, instance: Instance, *, now: datetime, random_bytes: RandomBytes) -> None:
    """Leave an event of what it holds though nothing of that changed: its host is in another region now."""
    sequence = instance.sequence + 1
    place = place_of(tx, instance.host_id or "")
    tx.run(
        "UPDATE instance SET sequence = :sequence, version = version + 1 WHERE id = :id",
        sequence=sequence,
        id=instance.id,
    )
    record_event(tx, event_of("instance.held", instance, instance, sequence, now, random_bytes, place=place))


def _put_labels(tx: Transaction, id: str, project: str, labels: Mapping[str, str]) -> None:
    tx.run("DELETE FROM instance_label WHERE instance_id = :id", id=id)
    _insert_labels(tx, id, project, labels)


def _insert_labels(tx: Transaction, id: str, project: str, labels: Mapping[str, str]) -> None:
    for key, value in labels.items():
        tx.run(
            "INSERT INTO instance_label (instance_id, project_id, key, value) VALUES (:id, :project, :key, :value)",
            id=id,
            project=project,
            key=key,
            value=value,
        )


def move_labels(tx: Transaction) -> int:
    """Copy the labels of rows from before migration 12 out of their `spec`; how many rows that were."""
    rows = tx.all("SELECT id, project_id, spec FROM instance WHERE labels = ''")
    for id, project, spec in rows:
        labels = msgspec.json.decode(spec, type=_OldSpec).labels
        _put_labels(tx, id, project, labels)
        text = labels_text(labels)
        tx.run("UPDATE instance SET labels = :text, version = version + 1 WHERE id = :id", text=text, id=id)
    return len(rows)


class _OldSpec(msgspec.Struct):
    labels: dict[str, str] = {}


def _give_back(tx: Transaction, before: Instance, after: Instance, now: datetime) -> None:
    if before.host_id and before.host_id != after.host_id:
        give_back(tx, before.host_id, now)
    if before.held.gpus != after.held.gpus:
        release_gpus(tx, after.id, keep=[card.slot for card in after.held.gpus])
    if before.held.ports and not after.held.ports:
        release_ports(tx, after.id)


# Reading, for one project


def page(
    tx: Transaction,
    project: ProjectId,
    *,
    after: str,
    limit: int,
    gone: bool = False,
    only: InstanceFilter = EVERYTHING,
    shown: dict[Row, View] | None = None,
) -> tuple[View, ...]:
    """In the order of their ids, which is that of their making.

    Only what is not in `shown`, kept by the caller from page to page, is read whole: an id and its version stand for
    one state of a row. Not for a transaction that writes, where that state may be undone.
    """
    conditions, values = _conditions(only, gone=gone or Phase.GONE in only.phases)
    marks = tx.all(
        "SELECT i.id, i.version, h.name, h.address FROM instance i LEFT JOIN host h ON h.id = i.host_id"
        f" WHERE i.project_id = :project AND i.id > :after{conditions} ORDER BY i.id LIMIT :limit",
        project=project,
        after=after,
        limit=limit,
        **values,
    )
    known = shown if shown is not None else {}
    views = [known.get(mark) for mark in marks]
    missing = [mark for mark, view in zip(marks, views, strict=True) if view is None]
    if not missing:
        return tuple([view for view in views if view])
    if len(known) + len(missing) > VIEWS_KEPT:
        known.clear()
    found = dict(zip(missing, _views_by_id(tx, [mark[0] for mark in missing]), strict=True))
    known.update(found)
    return tuple(view or found[mark] for mark, view in zip(marks, views, strict=True))


def _conditions(only: InstanceFilter, *, gone: bool) -> tuple[str, dict[str, str]]:
    """A filter as SQL. A pattern of a name has only `a-z0-9*?-`, so it needs no escapes."""
    text = ""
    values: dict[str, str] = {}
    if only.phases:
        values |= {f"phase{n}": str(phase) for n, phase in enumerate(only.phases)}
        text += f" AND i.phase IN ({', '.join(f':phase{n}' for n in range(len(only.phases)))})"
    if not gone:
        text += " AND i.phase <> 'gone'"
    for n, (key, value) in enumerate(only.labels):
        values |= {f"key{n}": key, f"value{n}": value}
        text += (
            " AND i.id IN (SELECT instance_id FROM instance_label WHERE project_id = :project"
            f" AND key = :key{n} AND value = :value{n})"
        )
    if only.name:
        values["name"] = only.name.replace("*", "%").replace("?", "_")
        text += " AND i.name LIKE :name"
    return text, values


def _views_by_id(tx: Transaction, ids: Sequence[str]) -> tuple[View, ...]:
    marks, values = _list_of(ids)
    return _views(tx, tx.all(f"{_VIEW} WHERE i.id IN ({marks}) ORDER BY i.id", **values))


def find(tx: Transaction, project: ProjectId, ref: str) -> View | None:
    """By its id, whatever its phase, or by the name of one that is not gone."""
    rows = tx.all(
        f"{_VIEW} WHERE i.project_id = :project AND (i.id = :ref OR (i.name = :ref AND i.phase <> 'gone'))",
        project=project,
        ref=ref,
    )
    return _views(tx, rows[:1])[0] if rows else None


def lock(tx: Transaction, project: ProjectId, ref: str) -> None:
    """Until the transaction ends nobody else changes the instance that `find` will find."""
    tx.lock(
        "SELECT id FROM instance WHERE project_id = :project AND (id = :ref OR (name = :ref AND phase <> 'gone'))"
        " ORDER BY id",
        project=project,
        ref=ref,
    )


def find_deleted_by_itself(tx: Transaction, project: ProjectId, name: str, since: datetime) -> View | None:
    """The last instance of that name that is gone, if it deleted itself and not before `since`."""
    rows = tx.all(
        f"{_VIEW} WHERE i.project_id = :project AND i.name = :name AND i.phase = 'gone' ORDER BY i.id DESC LIMIT 1",
        project=project,
        name=name,
    )
    view = _views(tx, rows)[0] if rows else None
    if view is None or not deletes_itself(view.instance):
        return None
    return view if view.instance.gone_at and view.instance.gone_at >= since else None


def usage(tx: Transaction, project: ProjectId) -> QuotaAmounts:
    """What counts against a project's quota. Stopped instances count, for they may be started again."""
    return _usage(tx, "project_id = :id", project)


def usage_of_organisation(tx: Transaction, organisation: OrganisationId) -> QuotaAmounts:
    """The same over all its projects. Removed ones are empty, and the rest is found by an index."""
    return _usage(tx, f"project_id IN ({IN_ORGANISATION})", organisation)


def _usage(tx: Transaction, where: str, id: str) -> QuotaAmounts:
    rows = tx.all(
        "SELECT gpu, COUNT(*), SUM(gpus), SUM(vcpus), SUM(ram_bytes), SUM(disk_bytes + held_snapshots_bytes)"
        f" FROM instance WHERE {where} AND phase <> 'gone' AND phase <> 'failed' GROUP BY gpu",
        id=id,
    )
    instances, vcpus, ram, disk = (sum(int(row[index]) for row in rows) for index in (1, 3, 4, 5))
    return QuotaAmounts(
        instances=instances,
        vcpus=vcpus,
        ram_bytes=ram,
        disk_bytes=disk,
        gpus={row[0]: int(row[2]) for row in rows if row[0]},
    )


def taken_addresses(tx: Transaction, project: ProjectId) -> set[str]:
    rows = tx.all(
        "SELECT address FROM instance WHERE project_id = :project AND address IS NOT NULL", project=project
    )
    return {row[0] for row in rows}


def taken_names(tx: Transaction, project: ProjectId, prefix: str) -> set[str]:
    """Names that begin so, of instances that are not gone."""
    rows = tx.all(
        "SELECT name FROM instance WHERE project_id = :project AND phase <> 'gone' AND name >= :prefix"
        " AND name < :end",
        project=project,
        prefix=prefix,
        end=prefix + "\U0010ffff",
    )
    return {row[0] for row in rows}


# Reading, for operators


def located_in_all_projects(
    tx: Transaction,
    *,
    organisation: str = "",
    project: str = "",
    host: str = "",
    phase: str = "",
    ref: str = "",
    after: str = "",
    limit: int,
) -> tuple[Located, ...]:
    """Instances of every tenant in the order of their ids, those that are gone only by id. An empty filter is none."""
    rows = tx.all(
        "SELECT i.id, p.name, o.id, o.name FROM instance i JOIN project p ON p.id = i.project_id"
        " JOIN organisation o ON o.id = p.organisation_id WHERE i.id > :after"
        " AND (:organisation = '' OR o.id = :organisation) AND (:project = '' OR p.id = :project)"
        " AND (:host = '' OR i.host_id = :host) AND (:phase = '' OR i.phase = :phase)"
        " AND (i.id = :ref OR (i.phase <> 'gone' AND (:ref = '' OR i.name = :ref))) ORDER BY i.id LIMIT :limit",
        after=after,
        organisation=organisation,
        project=project,
        host=host,
        phase=phase,
        ref=ref,
        limit=limit,
    )
    views = _views_by_id(tx, [row[0] for row in rows]) if rows else ()
    return tuple(
        Located(
            view=view, project_name=row[1], organisation_id=OrganisationId(row[2]), organisation_name=row[3]
        )
        for row, view in zip(rows, views, strict=True)
    )


def to_end_in_organisation(
    tx: Transaction, organisation: OrganisationId, *, deleted: bool, limit: int
) -> list[tuple[ProjectId, InstanceId]]:
    """What an organisation that is suspended still wants running or, where it is to be deleted, still has."""
    wanted = "i.wanted <> 'gone'" if deleted else "i.wanted = 'running' AND i.phase <> 'failed'"
    rows = tx.all(
        "SELECT i.project_id, i.id FROM instance i JOIN project p ON p.id = i.project_id"
        f" WHERE p.organisation_id = :organisation AND i.phase <> 'gone' AND {wanted} ORDER BY i.id LIMIT :limit",
        organisation=organisation,
        limit=limit,
    )
    return [(ProjectId(row[0]), InstanceId(row[1])) for row in rows]


# Reading, for the loops


def by_id_in_all_projects(tx: Transaction, id: InstanceId) -> Instance | None:
    rows = tx.all(f"SELECT {COLUMNS} FROM instance WHERE id = :id", id=id)
    return instances_from(tx, rows)[0] if rows else None


def name_in_all_projects(tx: Transaction, id: str) -> str | None:
    """Also of one that is gone."""
    row = tx.one("SELECT name FROM instance WHERE id = :id", id=id)
    return str(row[0]) if row else None


def site_in_all_projects(tx: Transaction, id: str) -> str:
    """Where an instance runs, or ran; empty where that is not known."""
    row = tx.one("SELECT site FROM instance WHERE id = :id", id=id)
    return str(row[0]) if row else ""


def on_site_in_all_projects(tx: Transaction, site: str) -> list[Row]:
    """Of all instances on a site's hosts: id, phase, wanted, host name (empty for a rented host), whether work is under
    way or the host is recorded as away, their shape, and of a rented machine when it was made and its provider's id.
    """
    return tx.all(
        "SELECT i.id, i.phase, i.wanted, CASE WHEN h.kind = 'own' THEN h.name ELSE '' END,"
        " CASE WHEN i.operation = '' AND i.settled = 1 AND h.state <> 'away' THEN 0 ELSE 1 END,"
        " i.vcpus, i.ram_bytes, i.disk_bytes, h.made_at_us, h.remote_id"
        " FROM instance i JOIN host h ON h.id = i.host_id WHERE i.site = :site AND h.site = :site",
        site=site,
    )


def slots_on_site_in_all_projects(tx: Transaction, site: str) -> dict[str, tuple[str, ...]]:
    """The cards of each instance that has some, sorted."""
    rows = tx.all(
        "SELECT g.instance_id, g.slot FROM host_gpu g JOIN host h ON h.id = g.host_id"
        " WHERE h.site = :site AND g.instance_id IS NOT NULL",
        site=site,
    )
    found: dict[str, tuple[str, ...]] = {}
    for id, slot in sorted(rows):  # here, for engines sort words each in their own way
        found[id] = (*found.get(id, ()), slot)
    return found


def on_host_in_all_projects(tx: Transaction, host_id: HostId) -> tuple[Instance, ...]:
    return instances_from(tx, tx.all(f"SELECT {COLUMNS} FROM instance WHERE host_id = :id", id=host_id))


def lock_on_host_in_all_projects(tx: Transaction, host_id: HostId) -> tuple[Instance, ...]:
    """As above; until the transaction ends nobody else changes them."""
    rows = tx.lock(f"SELECT {COLUMNS} FROM instance WHERE host_id = :id ORDER BY id", id=host_id)
    return instances_from(tx, rows)


def on_lost_hosts_in_all_projects(tx: Transaction, seen_before: datetime) -> tuple[Instance, ...]:
    """Instances that are away, at rest, on own hosts that no reading has found since a time."""
    rows = tx.all(
        f"SELECT {_FROM_I} FROM instance i JOIN host h ON h.id = i.host_id WHERE i.phase = 'away' AND i.operation = ''"
        " AND h.kind = 'own' AND h.state = 'away' AND h.seen_at_us < :before ORDER BY i.id",
        before=microseconds(seen_before),
    )
    return instances_from(tx, rows)


def away_in_work_in_all_projects(tx: Transaction, site: str) -> list[tuple[InstanceId, str]]:
    """Instances that are away in the middle of an operation, and the names of their hosts; empty for rented ones."""
    rows = tx.all(
        "SELECT i.id, CASE WHEN h.kind = 'own' THEN h.name ELSE '' END"
        " FROM instance i JOIN host h ON h.id = i.host_id WHERE i.settled = 0"
        " AND i.phase = 'away' AND i.operation <> '' AND h.site = :site ORDER BY i.id",
        site=site,
    )
    return [(InstanceId(row[0]), row[1]) for row in rows]


def ids_known_in_all_projects(tx: Transaction, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The phases and sites of those of the ids that we know."""
    known = {}
    for id in ids:
        row = tx.one("SELECT phase, site FROM instance WHERE id = :id", id=id)
        if row:
            known[id] = (row[0], row[1])
    return known


def ids_on_engines_in_all_projects(tx: Transaction) -> list[str]:
    """Of instances that have a disk somewhere. Of any schema version: it may be asked before an update."""
    rows = tx.all(
        "SELECT id FROM instance WHERE phase NOT IN ('queued', 'failed', 'deleting', 'gone') ORDER BY id"
    )
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
    """Those that should run and whose time limit ends by then, the first to end first."""
    rows = tx.all(
        f"SELECT {COLUMNS} FROM instance WHERE stop_at_us <= :until AND wanted = 'running'"
        " AND phase NOT IN ('gone', 'failed') ORDER BY stop_at_us, id",
        until=microseconds(until),
    )
    return instances_from(tx, rows)


def project_network(tx: Transaction, project: ProjectId) -> tuple[int, str]:
    """The number of its network, and its name."""
    row = tx.one("SELECT network_number, name FROM project WHERE id = :id", id=project)
    assert row is not None, "an instance has a project"
    return int(row[0]), str(row[1])


def count_by_phase_in_all_projects(tx: Transaction) -> dict[str, int]:
    return {row[0]: int(row[1]) for row in tx.all("SELECT phase, COUNT(*) FROM instance GROUP BY phase")}


# Output


def put_output(tx: Transaction, instance: InstanceId, log: str) -> None:
    if not tx.run("UPDATE instance_output SET log = :log WHERE instance_id = :id", log=log, id=instance):
        tx.run("INSERT INTO instance_output (instance_id, log) VALUES (:id, :log)", id=instance, log=log)


def remove_output(tx: Transaction, instance: InstanceId) -> None:
    tx.run("DELETE FROM instance_output WHERE instance_id = :id", id=instance)


def remove_outputs_of_gone_in_all_projects(tx: Transaction, before: datetime) -> int:
    """Of instances that were gone by then."""
    return tx.run(
        "DELETE FROM instance_output WHERE instance_id IN"
        " (SELECT id FROM instance WHERE phase = 'gone' AND gone_at_us < :before)",
        before=microseconds(before),
    )


def output(tx: Transaction, instance: InstanceId) -> str | None:
    row = tx.one("SELECT log FROM instance_output WHERE instance_id = :id", id=instance)
    return row[0] if row else None


# Rows to values and back


def _views(tx: Transaction, rows: Sequence[Row]) -> tuple[View, ...]:
    if not rows:
        return ()
    gpus, ports = _held_by(tx, rows)
    return tuple(_view_from(row, tuple(gpus[row[0]]), tuple(ports[row[0]])) for row in rows)


def _view_from(row: Row, gpus: tuple[HeldGpu, ...], ports: tuple[HeldPort, ...]) -> View:
    kind, type, region, zone, login, remote_id, endpoints, name, address, simulated = row[-_OF_HOST:]
    rented = None
    if kind == HostKind.RENTED:
        reached = _ENDPOINTS.decode(endpoints) if endpoints else {}
        rented = Rented(
            type=type, region=region, zone=zone, user=login, remote_id=remote_id, endpoints=reached
        )
    return View(
        instance=instance_from(row[:-_OF_HOST], gpus, ports),
        host_name=name,
        host_address=address,
        simulated=bool(simulated),
        rented=rented,
    )


def instances_from(tx: Transaction, rows: Sequence[Row]) -> tuple[Instance, ...]:
    if not rows:
        return ()
    gpus, ports = _held_by(tx, rows)
    return tuple(instance_from(row, tuple(gpus[row[0]]), tuple(ports[row[0]])) for row in rows)


def _held_by(
    tx: Transaction, rows: Sequence[Row]
) -> tuple[Mapping[str, Sequence[HeldGpu]], Mapping[str, Sequence[HeldPort]]]:
    """The cards and ports of instances by their ids, in two statements for all of them."""
    marks, values = _list_of([row[0] for row in rows])
    gpus = tx.all(
        f"SELECT instance_id, slot, kind, gpu FROM host_gpu WHERE instance_id IN ({marks})", **values
    )
    ports = tx.all(
        f"SELECT instance_id, port, guest_port FROM host_port WHERE instance_id IN ({marks})", **values
    )
    return _sorted_gpus(gpus), _sorted_ports(ports)


def _sorted_gpus(rows: Sequence[Row]) -> Mapping[str, Sequence[HeldGpu]]:
    found: dict[str, list[HeldGpu]] = defaultdict(list)
    for id, slot, kind, gpu in sorted(rows):
        found[id].append(HeldGpu(slot, GpuKind(kind), gpu))
    return found


def _sorted_ports(rows: Sequence[Row]) -> Mapping[str, Sequence[HeldPort]]:
    found: dict[str, list[HeldPort]] = defaultdict(list)
    for id, port, guest_port in sorted(rows):
        found[id].append(HeldPort(port, guest_port))
    return found


def _list_of(ids: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The marks of an `IN (…)` and their values, padded to a few lengths so that few statements are prepared."""
    length = next((size for size in (1, 21, 51, 201) if size >= len(ids)), len(ids))
    padded = [*ids, *([ids[-1]] * (length - len(ids)))]
    return ", ".join(f":i{n}" for n in range(length)), {f"i{n}": id for n, id in enumerate(padded)}
