"""All SQL about the instances of one project. `put` is the only writer of changes: it writes the row and its events.

Queries across projects are in `across/store.py`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.events import RandomBytes
from teraflock.base.size import Size
from teraflock.fleet.card import store as cards
from teraflock.fleet.model import HostKind
from teraflock.fleet.port import store as ports
from teraflock.fleet.rented.store import give_back
from teraflock.fleet.store import place_of
from teraflock.instance.events import event_of, host_of, kinds_of
from teraflock.instance.model import (
    HeldGpu,
    HeldPort,
    Instance,
    InstanceFilter,
    InstanceId,
    Rented,
    View,
    WantedRunning,
)
from teraflock.instance.rows import NAMES, instance_from, labels_text, values_of
from teraflock.instance.rules import deletes_itself
from teraflock.instance.states import ENDED, Phase
from teraflock.network.store import addresses_from
from teraflock.storage.database import Row, Transaction
from teraflock.storage.events import record_event
from teraflock.storage.table import add_row, among, in_list
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.project.store import IN_ORGANISATION
from teraflock.tenant.quota.rules import QuotaAmounts

COLUMNS: Final = ", ".join(NAMES)
COLUMNS_OF_I: Final = ", ".join(f"i.{name}" for name in NAMES)
_COLUMNS_OF_HOST: Final = (
    "h.kind, h.type, h.region, h.zone, h.login, h.remote_id, h.endpoints, h.name, h.address, h.simulated"
)
_VIEW: Final = (
    f"SELECT {COLUMNS_OF_I}, {_COLUMNS_OF_HOST} FROM instance i LEFT JOIN host h ON h.id = i.host_id"
)
_OF_HOST: Final = 10
"""The number of columns of a view that belong to its host."""
_FIXED: Final = ("id", "project_id", "name", "image", "access", "spec", "created_at_us", "created_by")
_CHANGES: Final = ", ".join(f"{name} = :{name}" for name in NAMES if name not in _FIXED)
_UPDATE: Final = f"UPDATE instance SET {_CHANGES}, version = version + 1 WHERE id = :id"
_ENDPOINTS: Final = msgspec.json.Decoder(dict[int, tuple[str, int]])
EVERYTHING: Final = InstanceFilter()
VIEWS_KEPT: Final = 4096  # a few kB each


# Writing


def insert(tx: Transaction, instance: Instance, *, now: datetime, random_bytes: RandomBytes) -> Instance:
    """Add an instance. The caller has claimed what it holds, in the same transaction."""
    stored = msgspec.structs.replace(instance, sequence=1)
    add_row(tx, "instance", **values_of(stored), lease_owner="")
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
    """Write an instance, release what it no longer holds, and record an event for every change of phase or size."""
    kinds = kinds_of(before, after)
    stored = msgspec.structs.replace(after, sequence=before.sequence + len(kinds))
    values = values_of(stored)
    tx.run(_UPDATE, **{name: values[name] for name in values if name not in _FIXED or name == "id"})
    if before.spec is not stored.spec and before.spec != stored.spec:  # another machine is rented for it
        tx.run(
            "UPDATE instance SET spec = :spec, version = version + 1 WHERE id = :id",
            spec=values["spec"],
            id=stored.id,
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


def record_held(tx: Transaction, instance: Instance, *, now: datetime, random_bytes: RandomBytes) -> None:
    """Record an event with what it holds, although that did not change: its host has moved to another region."""
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
        add_row(tx, "instance_label", instance_id=id, project_id=project, key=key, value=value)


def move_labels(tx: Transaction) -> int:
    """Copy labels out of `spec`, for rows from before migration 12. Return the number of rows."""
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
        cards.release_gpus(tx, after.id, keep=[card.slot for card in after.held.gpus])
    if before.held.ports and not after.held.ports:
        ports.release_ports(tx, after.id)


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
    """A page of instances, oldest first.

    `shown` has views that the caller keeps between pages. Only missing ones are read in full: an id and a version
    stand for one state of a row. Do not use it in a transaction that writes, because that state may be rolled back.
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
    return _views_of(tx, marks, shown if shown is not None else {})


def _views_of(tx: Transaction, marks: Sequence[Row], known: dict[Row, View]) -> tuple[View, ...]:
    """The views that `known` has, and the others from the database. They are added to `known`."""
    views = [known.get(mark) for mark in marks]
    missing = [mark for mark, view in zip(marks, views, strict=True) if view is None]
    if not missing:
        return tuple([view for view in views if view])
    if len(known) + len(missing) > VIEWS_KEPT:
        known.clear()
    found = dict(zip(missing, views_by_id(tx, [mark[0] for mark in missing]), strict=True))
    known.update(found)
    return tuple(view or found[mark] for mark, view in zip(marks, views, strict=True))


def _conditions(only: InstanceFilter, *, gone: bool) -> tuple[str, dict[str, str]]:
    """A filter as SQL. The pattern of a name has only `a-z0-9*?-`, so nothing needs escaping."""
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


def views_by_id(tx: Transaction, ids: Sequence[str]) -> tuple[View, ...]:
    marks, values = in_list(ids)
    return _views(tx, tx.all(f"{_VIEW} WHERE i.id IN ({marks}) ORDER BY i.id", **values))


def view_of(tx: Transaction, instance: Instance) -> View:
    """The view of an instance that this transaction has just written."""
    row = tx.one(f"SELECT {_COLUMNS_OF_HOST} FROM host h WHERE h.id = :id", id=instance.host_id or "")
    return _viewed(instance, row or (None,) * _OF_HOST)


def find(tx: Transaction, project: ProjectId, ref: str) -> View | None:
    """Find an instance by id in any phase, or by name if it is not gone."""
    rows = tx.all(
        f"{_VIEW} WHERE i.project_id = :project AND (i.id = :ref OR (i.name = :ref AND i.phase <> 'gone'))",
        project=project,
        ref=ref,
    )
    return _views(tx, rows[:1])[0] if rows else None


def lock(tx: Transaction, project: ProjectId, ref: str) -> None:
    """Lock the instance that `find` returns until the transaction ends."""
    tx.lock(
        "SELECT id FROM instance WHERE project_id = :project AND (id = :ref OR (name = :ref AND phase <> 'gone'))"
        " ORDER BY id",
        project=project,
        ref=ref,
    )


def find_deleted_by_itself(tx: Transaction, project: ProjectId, name: str, since: datetime) -> View | None:
    """The last instance with this name that is gone, if it deleted itself after `since`."""
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
    """What counts against a project's quota. Stopped instances count, because they can be started again."""
    return _sum(_used(tx, "project_id = :id", project, project))


def usage_of_organisation(tx: Transaction, organisation: OrganisationId) -> QuotaAmounts:
    """What counts against an organisation's quota, in all its projects. Removed projects are empty."""
    return _sum(_used(tx, f"project_id IN ({IN_ORGANISATION})", organisation, ""))


def usage_of_both(
    tx: Transaction, project: ProjectId, organisation: OrganisationId
) -> tuple[QuotaAmounts, QuotaAmounts]:
    """Of a project and of its organisation. One statement, because every launch needs it."""
    rows = _used(tx, f"project_id IN ({IN_ORGANISATION})", organisation, project)
    return _sum([row for row in rows if row[0]]), _sum(rows)


def _used(tx: Transaction, where: str, id: str, project: str) -> list[Row]:
    """What is used, by GPU model. The first column is 1 for what belongs to `project`."""
    own = "CASE WHEN project_id = :project THEN 1 ELSE 0 END"
    return tx.all(
        f"SELECT {own}, gpu, COUNT(*), SUM(gpus), SUM(vcpus), SUM(ram_bytes),"
        " SUM(disk_bytes + held_snapshots_bytes), 0, 0, 0"
        f" FROM instance WHERE {where} AND phase NOT IN {among(ENDED)} GROUP BY 1, gpu"
        f" UNION ALL SELECT {own}, '', 0, 0, 0, 0, 0, COUNT(*), 0, 0 FROM published_port WHERE {where} GROUP BY 1"
        f" UNION ALL SELECT {own}, '', 0, 0, 0, 0, 0, COUNT(*), 0, 0 FROM balancer"
        f" WHERE {where} AND published IS NOT NULL GROUP BY 1"
        f" UNION ALL SELECT {own}, '', 0, 0, 0, 0, 0, 0, COUNT(*), 0 FROM address WHERE {where} GROUP BY 1"
        f" UNION ALL SELECT {own}, '', 0, 0, 0, 0, 0, 0, 0, COUNT(*) FROM network"
        f" WHERE {where} AND removed_at_us IS NULL GROUP BY 1"
        f" UNION ALL SELECT {own}, '', 0, 0, 0, 0, SUM(size_bytes + snapshots_bytes), 0, 0, 0 FROM volume"
        f" WHERE {where} AND deleting = 0 GROUP BY 1",
        id=id,
        project=project,
    )


def _sum(rows: Sequence[Row]) -> QuotaAmounts:
    instances, _, vcpus, ram, disk, ports, addresses, networks = (
        sum(int(row[n]) for row in rows) for n in range(2, 10)
    )
    gpus: dict[str, int] = defaultdict(int)
    for _, gpu, _, count, *_ in rows:
        if gpu:
            gpus[gpu] += int(count)
    return QuotaAmounts(
        ports=ports,
        addresses=addresses,
        networks=networks,
        instances=instances,
        vcpus=vcpus,
        ram_bytes=ram,
        disk_bytes=disk,
        gpus=dict(gpus),
    )


class _Mode(msgspec.Struct):
    mode: str = "on-demand"


class _Bid(msgspec.Struct):
    bid_micros_per_hour: int | None = None


def _bought(spec: str, preemptible: str) -> tuple[str, int]:
    """The purchase mode as the meter knows it, and what each card may cost if its price is set by an auction."""
    mode = msgspec.json.decode(spec, type=_Mode).mode
    bid = msgspec.json.decode(preemptible, type=_Bid).bid_micros_per_hour if preemptible else None
    return ("spot", 0) if mode == "bid" and bid is None else (mode, bid or 0)


def wanted_running(tx: Transaction, project: ProjectId) -> tuple[WantedRunning, ...]:
    """The instances of a project that should run, with their sizes. One statement, because every launch needs it."""
    rows = tx.all(
        "SELECT i.id, i.gpu, i.gpus, i.vcpus, i.ram_bytes, i.disk_bytes, COALESCE(h.id, ''), COALESCE(h.region, ''),"
        " i.spec, i.preemptible, i.phase FROM instance i LEFT JOIN host h ON h.id = i.host_id"
        f" WHERE i.project_id = :project AND i.wanted = 'running' AND i.phase NOT IN {among(ENDED)} ORDER BY i.id",
        project=project,
    )
    return tuple(
        WantedRunning(
            id=InstanceId(id),
            size=Size(gpu=gpu, gpus=gpus, vcpus=vcpus, ram_bytes=ram, disk_bytes=disk),
            host_id=host,
            region=region,
            mode=(bought := _bought(spec, preemptible))[0],
            card_micros_per_hour=bought[1],
            phase=Phase(phase),
        )
        for id, gpu, gpus, vcpus, ram, disk, host, region, spec, preemptible, phase in rows
    )


def taken_addresses(tx: Transaction, project: ProjectId) -> set[str]:
    """The addresses of all interfaces of instances, of balancers, and of copies that a lost host may still run."""
    rows = tx.all(
        "SELECT address, more_addresses FROM instance WHERE project_id = :project AND address IS NOT NULL"
        " UNION ALL SELECT address, '[]' FROM balancer WHERE project_id = :project"
        " UNION ALL SELECT address, '[]' FROM left_behind WHERE project_id = :project",
        project=project,
    )
    return {address for first, more in rows for address in (*first.split(), *addresses_from(more))}


def with_label(tx: Transaction, project: ProjectId, key: str, value: str) -> tuple[Instance, ...]:
    """The instances of a project with this label that are not gone."""
    rows = tx.all(
        f"SELECT {COLUMNS_OF_I} FROM instance_label l JOIN instance i ON i.id = l.instance_id"
        " WHERE l.project_id = :project AND l.key = :key AND l.value = :value AND i.phase <> 'gone' ORDER BY i.id",
        project=project,
        key=key,
        value=value,
    )
    return instances_from(tx, rows)


def hosts_with_label(tx: Transaction, project: ProjectId, key: str, value: str, *, but: str) -> list[str]:
    """The hosts of a project's instances with this label, without those of the instance `but`."""
    rows = tx.all(
        "SELECT DISTINCT i.host_id FROM instance_label l JOIN instance i ON i.id = l.instance_id"
        " WHERE l.project_id = :project AND l.key = :key AND l.value = :value AND i.host_id IS NOT NULL"
        " AND i.id <> :but",
        project=project,
        key=key,
        value=value,
        but=but,
    )
    return [row[0] for row in rows]


def taken_names(tx: Transaction, project: ProjectId, names: Sequence[str]) -> set[str]:
    """Those of these names that instances have which are not gone."""
    marks, values = in_list(names)
    rows = tx.all(
        f"SELECT name FROM instance WHERE project_id = :project AND phase <> 'gone' AND name IN ({marks})",
        project=project,
        **values,
    )
    return {row[0] for row in rows}


# Rows to values and back


def _views(tx: Transaction, rows: Sequence[Row]) -> tuple[View, ...]:
    if not rows:
        return ()
    gpus, ports = _held_by(tx, rows)
    return tuple(_view_from(row, tuple(gpus[row[0]]), tuple(ports[row[0]])) for row in rows)


def _view_from(row: Row, gpus: tuple[HeldGpu, ...], ports: tuple[HeldPort, ...]) -> View:
    return _viewed(instance_from(row[:-_OF_HOST], gpus, ports), row[-_OF_HOST:])


def _viewed(instance: Instance, host: Row) -> View:
    kind, type, region, zone, login, remote_id, endpoints, name, address, simulated = host
    rented = None
    if kind == HostKind.RENTED:
        reached = _ENDPOINTS.decode(endpoints) if endpoints else {}
        rented = Rented(
            type=type, region=region, zone=zone, user=login, remote_id=remote_id, endpoints=reached
        )
    return View(
        instance=instance,
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
    """The cards and ports of instances by id, in two statements for all of them."""
    ids = [row[0] for row in rows]
    gpus: dict[str, list[HeldGpu]] = defaultdict(list)
    for id, slot, kind, gpu in cards.held_by(tx, ids):
        gpus[id].append(HeldGpu(slot, kind, gpu))
    held: dict[str, list[HeldPort]] = defaultdict(list)
    for id, port, guest_port in ports.held_by(tx, ids):
        held[id].append(HeldPort(port, guest_port))
    return gpus, held
