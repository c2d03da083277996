"""All SQL about instances, their snapshots and what they hold. `put` is the one writer: row and event together.

Reads name their project, but for those of the loops, which say `in_all_projects`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.fleet.model import GpuKind, HostId
from teraflock.fleet.store import release_gpus, release_ports
from teraflock.instance.model import (
    Access,
    Held,
    HeldGpu,
    HeldPort,
    Instance,
    InstanceId,
    Operation,
    Progress,
    Request,
    Shape,
    Snapshot,
    SnapshotId,
    Spec,
    View,
)
from teraflock.instance.states import Phase, Wanted
from teraflock.storage.database import Row, Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.model import MemberId, ProjectId

RandomBytes = Callable[[int], bytes]

_NAMES: Final = (
    "id", "project_id", "name", "wanted", "wanted_at_us", "phase", "gpu", "gpus", "vcpus", "ram_bytes", "disk_bytes",
    "held_vcpus", "held_ram_bytes", "held_disk_bytes", "image", "access", "spec", "host_id", "address", "host_key",
    "problem", "exit_code", "created_at_us", "created_by", "running_since_us", "gone_at_us", "request", "operation",
    "step", "undoing", "operation_since_us", "attempts", "generation", "sequence", "due_at_us", "settled",
)  # fmt: skip
_COLUMNS: Final = ", ".join(_NAMES)
_FROM_I: Final = ", ".join(f"i.{name}" for name in _NAMES)
_VIEW: Final = (
    f"SELECT {_FROM_I}, h.name, h.address, h.simulated FROM instance i LEFT JOIN host h ON h.id = i.host_id"
)
_INSERT: Final = (
    f"INSERT INTO instance ({_COLUMNS}, lease_owner) VALUES ({', '.join(':' + name for name in _NAMES)}, '')"
)
_FIXED: Final = ("id", "project_id", "name", "image", "access", "spec", "created_at_us", "created_by")
_CHANGES: Final = ", ".join(f"{name} = :{name}" for name in _NAMES if name not in _FIXED)
_UPDATE: Final = f"UPDATE instance SET {_CHANGES}, version = version + 1 WHERE id = :id"
VIEWS_KEPT: Final = 4096  # a few kB each
_SPEC: Final = msgspec.json.Decoder(Spec)
_REQUEST: Final = msgspec.json.Decoder(Request)


# Writing ---


def insert(tx: Transaction, instance: Instance, *, now: datetime, random_bytes: RandomBytes) -> Instance:
    """A new instance. What it holds on its host is taken by the caller, in the same transaction."""
    stored = msgspec.structs.replace(instance, sequence=1)
    tx.run(_INSERT, **_values(stored))
    record_event(tx, _event("instance.moved", None, stored, 1, now, random_bytes))
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
    kinds = []
    if after.phase != before.phase:
        kinds.append("instance.moved")
    elif _amounts(after) != _amounts(before):
        kinds.append("instance.held")
    if after.problem and after.problem != before.problem:
        kinds.append("instance.troubled")
    stored = msgspec.structs.replace(after, sequence=before.sequence + len(kinds))
    tx.run(
        _UPDATE,
        **{name: value for name, value in _values(stored).items() if name not in _FIXED or name == "id"},
    )
    for sequence, kind in enumerate(kinds, start=before.sequence + 1):
        record_event(tx, _event(kind, before, stored, sequence, now, random_bytes, last_seen=last_seen))
    _give_back(tx, before, stored)
    return stored


def _give_back(tx: Transaction, before: Instance, after: Instance) -> None:
    if before.held.gpus != after.held.gpus:
        release_gpus(tx, after.id, keep=[card.slot for card in after.held.gpus])
    if before.held.ports and not after.held.ports:
        release_ports(tx, after.id)


def _amounts(instance: Instance) -> tuple[object, ...]:
    held = instance.held
    return (held.vcpus, held.ram_bytes, held.disk_bytes, len(held.gpus), instance.shape.gpu, instance.host_id)


def _event(
    kind: str,
    before: Instance | None,
    after: Instance,
    sequence: int,
    now: datetime,
    random_bytes: RandomBytes,
    *,
    last_seen: datetime | None = None,
) -> Event:
    held = after.held
    details: dict[str, str | int | float | bool | None] = {
        "sequence": sequence,
        "generation": after.generation,
        "name": after.name,
        "from": before.phase if before else "",
        "to": after.phase,
        "gpu": after.shape.gpu,
        "gpus": len(held.gpus),
        "vcpus": held.vcpus,
        "ram_bytes": held.ram_bytes,
        "disk_bytes": held.disk_bytes,
        "host": after.host_id or (before.host_id if before else None) or "",
        "member": after.created_by,
        "labels": msgspec.json.encode(after.spec.labels).decode(),
        "asked_at_us": microseconds(after.wanted_at),
    }
    if after.problem:
        details["problem"] = after.problem
    if last_seen is not None:
        details["last_seen_us"] = microseconds(last_seen)
    return Event(
        id=EventId(new_id("evt", now, random_bytes)),
        at=now,
        kind=kind,
        subject=after.id,
        project=after.project_id,
        details=details,
    )


# Reading, for one project ---------------------------------------------------------------------------------------------


def page(
    tx: Transaction,
    project: ProjectId,
    *,
    after: str,
    limit: int,
    gone: bool = False,
    shown: dict[Row, View] | None = None,
) -> tuple[View, ...]:
    """In the order of their ids, which is that of their making.

    Only what is not in `shown`, kept by the caller from page to page, is read whole: an id and its version stand for
    one state of a row. Not for a transaction that writes, where that state may be undone.
    """
    only = "" if gone else " AND i.phase <> 'gone'"
    marks = tx.all(
        "SELECT i.id, i.version, h.name, h.address FROM instance i LEFT JOIN host h ON h.id = i.host_id"
        f" WHERE i.project_id = :project AND i.id > :after{only} ORDER BY i.id LIMIT :limit",
        project=project,
        after=after,
        limit=limit,
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


def usage(tx: Transaction, project: ProjectId) -> tuple[int, int, int, int, dict[str, int]]:
    """What counts against a project's quota: instances, virtual processors, RAM, disk, and cards by model."""
    rows = tx.all(
        "SELECT gpu, COUNT(*), SUM(gpus), SUM(vcpus), SUM(ram_bytes), SUM(disk_bytes) FROM instance"
        " WHERE project_id = :project AND phase NOT IN ('gone', 'failed') GROUP BY gpu",
        project=project,
    )
    instances, vcpus, ram, disk = (sum(int(row[index]) for row in rows) for index in (1, 3, 4, 5))
    return instances, vcpus, ram, disk, {row[0]: int(row[2]) for row in rows if row[0]}


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


# Reading, for the loops -----------------------------------------------------------------------------------------------


def lease_due_in_all_projects(
    tx: Transaction, worker: str, *, now: datetime, limit: int
) -> tuple[Instance, ...]:
    """Take in hand what is due and nobody living has in hand."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM instance WHERE settled = 0 AND due_at_us <= :now AND (lease_owner = '' OR"
        " lease_owner NOT IN (SELECT id FROM worker WHERE until_us > :now)) ORDER BY due_at_us, id LIMIT :limit",
        now=microseconds(now),
        limit=limit,
    )
    tx.run_many(
        "UPDATE instance SET lease_owner = :worker WHERE id = :id", [(worker, row[0]) for row in rows]
    )
    return _instances(tx, rows)


def is_any_due_in_all_projects(tx: Transaction, now: datetime) -> bool:
    row = tx.one(
        "SELECT 1 FROM instance WHERE settled = 0 AND due_at_us <= :now LIMIT 1", now=microseconds(now)
    )
    return row is not None


def next_due_in_all_projects(tx: Transaction) -> datetime | None:
    row = tx.one("SELECT MIN(due_at_us) FROM instance WHERE settled = 0 AND lease_owner = ''")
    return at_microseconds(row[0]) if row and row[0] is not None else None


def held_by(tx: Transaction, id: InstanceId, worker: str) -> Instance | None:
    """The instance as it is now, if the worker still has it in hand."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM instance WHERE id = :id AND lease_owner = :worker", id=id, worker=worker
    )
    return _instances(tx, rows)[0] if rows else None


def note_step(tx: Transaction, instance: Instance, worker: str, step: str, now: datetime) -> bool:
    """Write down that a step is done. False, and nothing is written, where the row is not as it was: read it anew."""
    changed = tx.run(
        "UPDATE instance SET step = :step, attempts = 0, operation_since_us = :now, version = version + 1"
        " WHERE id = :id AND lease_owner = :worker AND generation = :generation AND wanted = :wanted"
        " AND step = :before AND undoing = 0",
        before=instance.progress.step if instance.progress else "",
        step=step,
        now=microseconds(now),
        id=instance.id,
        worker=worker,
        generation=instance.generation,
        wanted=instance.wanted,
    )
    return changed == 1


def let_go(tx: Transaction, id: InstanceId, worker: str) -> None:
    tx.run(
        "UPDATE instance SET lease_owner = '' WHERE id = :id AND lease_owner = :worker", id=id, worker=worker
    )


def let_go_all(tx: Transaction) -> None:
    """For the only worker there is, when it starts: nobody has anything in hand."""
    tx.run("UPDATE instance SET lease_owner = '' WHERE lease_owner <> ''")
    tx.run("DELETE FROM worker")


def heartbeat(tx: Transaction, worker: str, until: datetime, now: datetime) -> None:
    tx.run("DELETE FROM worker WHERE until_us < :long_ago", long_ago=microseconds(now) - 3_600_000_000)
    changed = tx.run(
        "UPDATE worker SET until_us = :until WHERE id = :id", until=microseconds(until), id=worker
    )
    if not changed:
        tx.run("INSERT INTO worker (id, until_us) VALUES (:id, :until)", id=worker, until=microseconds(until))


def end_worker(tx: Transaction, worker: str) -> None:
    tx.run("UPDATE instance SET lease_owner = '' WHERE lease_owner = :worker", worker=worker)
    tx.run("DELETE FROM worker WHERE id = :worker", worker=worker)


def by_id_in_all_projects(tx: Transaction, id: InstanceId) -> Instance | None:
    rows = tx.all(f"SELECT {_COLUMNS} FROM instance WHERE id = :id", id=id)
    return _instances(tx, rows)[0] if rows else None


def on_site_in_all_projects(tx: Transaction, site: str) -> list[Row]:
    """Of all instances on a site's hosts: id, phase, wanted, host name and state, and whether work is under way."""
    return tx.all(
        "SELECT i.id, i.phase, i.wanted, h.name, h.state,"
        " CASE WHEN i.operation = '' AND i.settled = 1 THEN 0 ELSE 1 END"
        " FROM instance i JOIN host h ON h.id = i.host_id WHERE h.site = :site",
        site=site,
    )


def on_host_in_all_projects(tx: Transaction, host_id: HostId) -> tuple[Instance, ...]:
    return _instances(tx, tx.all(f"SELECT {_COLUMNS} FROM instance WHERE host_id = :id", id=host_id))


def ids_known_in_all_projects(tx: Transaction, ids: Sequence[str]) -> dict[str, str]:
    """The phases of those of the ids that we know."""
    known = {}
    for id in ids:
        row = tx.one("SELECT phase FROM instance WHERE id = :id", id=id)
        if row:
            known[id] = row[0]
    return known


def commands_running_in_all_projects(tx: Transaction) -> tuple[Instance, ...]:
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM instance WHERE access = 'command' AND phase = 'running' AND wanted = 'running'"
        " AND exit_code IS NULL AND operation = ''"
    )
    return _instances(tx, rows)


def project_network_number(tx: Transaction, project: ProjectId) -> int:
    row = tx.one("SELECT network_number FROM project WHERE id = :id", id=project)
    assert row is not None, "an instance has a project"
    return int(row[0])


def live_in_project(tx: Transaction, project: ProjectId) -> int:
    row = tx.one("SELECT COUNT(*) FROM instance WHERE project_id = :id AND phase <> 'gone'", id=project)
    return int(row[0]) if row else 0


def count_by_phase_in_all_projects(tx: Transaction) -> dict[str, int]:
    return {row[0]: int(row[1]) for row in tx.all("SELECT phase, COUNT(*) FROM instance GROUP BY phase")}


# Snapshots and output -------------------------------------------------------------------------------------------------


def insert_snapshot(tx: Transaction, snapshot: Snapshot) -> None:
    tx.run(
        "INSERT INTO snapshot (id, project_id, instance_id, name, state, created_at_us)"
        " VALUES (:id, :project, :instance, :name, :state, :at)",
        id=snapshot.id,
        project=snapshot.project_id,
        instance=snapshot.instance_id,
        name=snapshot.name,
        state=snapshot.state,
        at=microseconds(snapshot.created_at),
    )


def snapshots(tx: Transaction, instance: InstanceId) -> tuple[Snapshot, ...]:
    rows = tx.all(
        "SELECT id, project_id, instance_id, name, state, created_at_us FROM snapshot WHERE instance_id = :id"
        " ORDER BY id",
        id=instance,
    )
    return tuple(
        Snapshot(
            id=SnapshotId(row[0]),
            project_id=ProjectId(row[1]),
            instance_id=InstanceId(row[2]),
            name=row[3],
            state=row[4],
            created_at=at_microseconds(row[5]),
        )
        for row in rows
    )


def set_snapshot_state(tx: Transaction, id: str, state: str) -> None:
    tx.run("UPDATE snapshot SET state = :state WHERE id = :id", state=state, id=id)


def remove_snapshot(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM snapshot WHERE id = :id", id=id)


def remove_snapshots_of(tx: Transaction, instance: InstanceId) -> None:
    tx.run("DELETE FROM snapshot WHERE instance_id = :id", id=instance)


def put_output(tx: Transaction, instance: InstanceId, log: str) -> None:
    if not tx.run("UPDATE instance_output SET log = :log WHERE instance_id = :id", log=log, id=instance):
        tx.run("INSERT INTO instance_output (instance_id, log) VALUES (:id, :log)", id=instance, log=log)


def output(tx: Transaction, instance: InstanceId) -> str | None:
    row = tx.one("SELECT log FROM instance_output WHERE instance_id = :id", id=instance)
    return row[0] if row else None


# Rows to values and back ----------------------------------------------------------------------------------------------


def _values(instance: Instance) -> dict[str, Any]:
    progress, shape, held = instance.progress, instance.shape, instance.held
    return {
        "id": instance.id,
        "project_id": instance.project_id,
        "name": instance.name,
        "wanted": instance.wanted,
        "wanted_at_us": microseconds(instance.wanted_at),
        "phase": instance.phase,
        "gpu": shape.gpu,
        "gpus": shape.gpus,
        "vcpus": shape.vcpus,
        "ram_bytes": shape.ram_bytes,
        "disk_bytes": shape.disk_bytes,
        "held_vcpus": held.vcpus,
        "held_ram_bytes": held.ram_bytes,
        "held_disk_bytes": held.disk_bytes,
        "image": instance.image,
        "access": instance.access,
        "spec": msgspec.json.encode(instance.spec).decode(),
        "host_id": instance.host_id,
        "address": instance.address,
        "host_key": instance.host_key,
        "problem": instance.problem,
        "exit_code": instance.exit_code,
        "created_at_us": microseconds(instance.created_at),
        "created_by": instance.created_by,
        "running_since_us": microseconds(instance.running_since) if instance.running_since else None,
        "gone_at_us": microseconds(instance.gone_at) if instance.gone_at else None,
        "request": msgspec.json.encode(instance.request).decode() if instance.request else "",
        "operation": progress.operation if progress else "",
        "step": progress.step if progress else "",
        "undoing": int(progress.undoing) if progress else 0,
        "operation_since_us": microseconds(progress.since) if progress else 0,
        "attempts": progress.attempts if progress else 0,
        "generation": instance.generation,
        "sequence": instance.sequence,
        "due_at_us": microseconds(instance.due_at),
        "settled": int(instance.settled),
    }


def _views(tx: Transaction, rows: Sequence[Row]) -> tuple[View, ...]:
    if not rows:
        return ()
    gpus, ports = _held_by(tx, rows)
    return tuple(_view_from(row, tuple(gpus[row[0]]), tuple(ports[row[0]])) for row in rows)


def _view_from(row: Row, gpus: tuple[HeldGpu, ...], ports: tuple[HeldPort, ...]) -> View:
    return View(
        instance=_instance_from(row[:-3], gpus, ports),
        host_name=row[-3],
        host_address=row[-2],
        simulated=bool(row[-1]),
    )


def _instances(tx: Transaction, rows: Sequence[Row]) -> tuple[Instance, ...]:
    if not rows:
        return ()
    gpus, ports = _held_by(tx, rows)
    return tuple(_instance_from(row, tuple(gpus[row[0]]), tuple(ports[row[0]])) for row in rows)


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


def _instance_from(row: Row, gpus: tuple[HeldGpu, ...], ports: tuple[HeldPort, ...]) -> Instance:
    (
        id, project_id, name, wanted, wanted_at_us, phase, gpu, count, vcpus, ram, disk, held_vcpus, held_ram,
        held_disk, image, access, spec, host_id, address, host_key, problem, exit_code, created_at_us, created_by,
        running_since_us, gone_at_us, request, operation, step, undoing, since_us, attempts, generation, sequence,
        due_at_us, settled,
    ) = row  # fmt: skip
    progress = (
        Progress(
            operation=Operation(operation),
            since=at_microseconds(since_us),
            step=step,
            undoing=bool(undoing),
            attempts=attempts,
        )
        if operation
        else None
    )
    return Instance(
        id=InstanceId(id),
        project_id=ProjectId(project_id),
        name=name,
        wanted=Wanted(wanted),
        wanted_at=at_microseconds(wanted_at_us),
        phase=Phase(phase),
        shape=Shape(gpu=gpu, gpus=count, vcpus=vcpus, ram_bytes=ram, disk_bytes=disk),
        held=Held(vcpus=held_vcpus, ram_bytes=held_ram, disk_bytes=held_disk, gpus=gpus, ports=ports),
        image=image,
        access=Access(access),
        spec=_SPEC.decode(spec),
        host_id=HostId(host_id) if host_id else None,
        address=address,
        host_key=host_key,
        problem=problem,
        exit_code=exit_code,
        created_at=at_microseconds(created_at_us),
        created_by=MemberId(created_by),
        running_since=at_microseconds(running_since_us) if running_since_us is not None else None,
        gone_at=at_microseconds(gone_at_us) if gone_at_us is not None else None,
        request=_REQUEST.decode(request) if request else None,
        progress=progress,
        generation=generation,
        sequence=sequence,
        due_at=at_microseconds(due_at_us),
        settled=bool(settled),
    )
