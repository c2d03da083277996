"""All SQL about hosts, their cards and their ports. What is held is summed from the instances: it cannot drift."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.fleet.model import (
    DiskLimits,
    Gpu,
    GpuKind,
    GpuReport,
    Host,
    HostCost,
    HostId,
    HostKind,
    HostReport,
    HostState,
    Idle,
)
from teraflock.fleet.placement import RAM_BYTES_OF_HOUSE, Policy, Room
from teraflock.storage.database import Row, Transaction
from teraflock.tenant.model import ProjectId

_COLUMNS: Final = (
    "id, site, name, state, address, vcpus, ram_bytes, disk_bytes, simulated,"
    " registered_at_us, seen_at_us, region, disk_used_bytes, disk_limits, allow_out"
)
_RENTED_COLUMNS: Final = (
    "kind, type, zone, remote_id, login, token, token_at_us, made_at_us, gone_at_us,"
    " cost_micros_per_hour, cost_currency"
)
_SELECT: Final = f"SELECT {_COLUMNS}, {_RENTED_COLUMNS} FROM host"
REGION: Final = "home"
"""Where a host stands until the operator says otherwise."""
_HELD: Final = (
    "SELECT host_id, SUM(held_vcpus), SUM(held_ram_bytes), SUM(held_disk_bytes) FROM instance"
    " WHERE host_id IS NOT NULL"
)


def hosts(
    tx: Transaction, *, after: str = "", limit: int, kind: HostKind | None = HostKind.OWN
) -> tuple[Host, ...]:
    """A page of hosts of one kind, or of both."""
    rows = tx.all(
        f"{_SELECT} WHERE id > :after AND (:kind = '' OR kind = :kind) ORDER BY id LIMIT :limit",
        after=after,
        kind=kind or "",
        limit=limit,
    )
    return _with_parts(tx, rows)


def outlines(tx: Transaction) -> tuple[Host, ...]:
    """All own hosts with the kinds of their cards, without slots and holders: several times as quick."""
    cards: dict[str, list[Gpu]] = defaultdict(list)
    for host_id, gpu, count in tx.all(
        "SELECT g.host_id, g.gpu, COUNT(*) FROM host_gpu g JOIN host h ON h.id = g.host_id WHERE h.kind = 'own'"
        " GROUP BY g.host_id, g.gpu"
    ):
        cards[host_id] += [_gpu_outline(gpu)] * count
    rows = tx.all(f"{_SELECT} WHERE kind = 'own' ORDER BY id")
    return tuple(_host_from(row, (0, 0, 0), tuple(cards[row[0]])) for row in rows)


def rented_outlines(tx: Transaction, site: str = "") -> tuple[Host, ...]:
    """Rented hosts that were not given back, of one site or of all, without their cards."""
    rows = tx.all(
        f"{_SELECT} WHERE kind = 'rented' AND gone_at_us IS NULL AND (:site = '' OR site = :site) ORDER BY id",
        site=site,
    )
    return tuple(_host_from(row, (0, 0, 0), ()) for row in rows)


def kinds_of_hosts(tx: Transaction) -> tuple[Host, ...]:
    """As `outlines`, but one for all that have the same size and cards, and only size and cards are true of it."""
    rows = tx.all(_KINDS)
    counts: dict[str, list[tuple[str, int]]] = defaultdict(list)
    if any(row[1] != row[2] for row in rows):  # hosts with cards of several kinds
        for host_id, gpu, count in tx.all(
            "SELECT host_id, gpu, COUNT(*) FROM host_gpu GROUP BY host_id, gpu ORDER BY host_id, gpu"
        ):
            counts[host_id].append((gpu, count))
    return tuple(
        Host(
            id=HostId(id),
            site="",
            name="",
            state=HostState.READY,
            address="",
            vcpus=vcpus,
            ram_bytes=ram,
            disk_bytes=disk,
            simulated=False,
            registered_at=at_microseconds(0),
            seen_at=at_microseconds(0),
            gpus=tuple(
                _gpu_outline(gpu)
                for gpu, count in ([(low, cards)] if low == high else counts[id])
                for _ in range(count)
            ),
            alike=alike,
        )
        for id, low, high, cards, alike, vcpus, ram, disk in rows
    )


_KINDS: Final = (
    "SELECT MIN(h.id), COALESCE(g.low, ''), COALESCE(g.high, ''), COALESCE(g.cards, 0), COUNT(*),"
    " h.vcpus, h.ram_bytes, h.disk_bytes FROM host h LEFT JOIN (SELECT host_id,"
    " MIN(gpu) AS low, MAX(gpu) AS high, COUNT(*) AS cards FROM host_gpu GROUP BY host_id) g ON g.host_id = h.id"
    " WHERE h.kind = 'own' GROUP BY h.vcpus, h.ram_bytes, h.disk_bytes, g.low, g.high, g.cards,"
    " CASE WHEN COALESCE(g.low, '') = COALESCE(g.high, '') THEN '' ELSE h.id END ORDER BY MIN(h.id)"
)


@cache
def _gpu_outline(gpu: str) -> Gpu:
    return Gpu(
        slot="", kind=GpuKind.PHYSICAL, gpu=gpu, name="", memory_bytes=0, healthy=True, instance_id=None
    )


def host(tx: Transaction, ref: str) -> Host | None:
    """By its id, or by the name its engine gives it."""
    row = tx.one(f"{_SELECT} WHERE id = :ref OR name = :ref ORDER BY id", ref=ref)
    return _with_parts(tx, [row])[0] if row else None


def put_report(
    tx: Transaction, site: str, report: HostReport, id: HostId, *, simulated: bool, now: datetime
) -> bool:
    """Keep what a host says of itself; whether it is new. Its state and who has its cards stay as they are."""
    now_us = microseconds(now)
    values = {
        "site": site, "name": report.name, "address": report.address, "vcpus": report.vcpus,
        "ram_bytes": report.ram_bytes, "disk_bytes": report.disk_bytes, "now": now_us,
        "disk_used_bytes": report.disk_used_bytes, "disk_limits": report.disk_limits,
    }  # fmt: skip
    known = tx.one("SELECT id FROM host WHERE site = :site AND name = :name", site=site, name=report.name)
    if known:
        tx.run(
            "UPDATE host SET address = :address, vcpus = :vcpus, ram_bytes = :ram_bytes, disk_bytes = :disk_bytes,"
            " disk_used_bytes = :disk_used_bytes, disk_limits = :disk_limits,"
            " seen_at_us = :now, state = CASE WHEN state = 'away' THEN 'ready' ELSE state END"
            " WHERE site = :site AND name = :name",
            **values,
        )
    else:
        tx.run(
            f"INSERT INTO host ({_COLUMNS}) VALUES (:id, :site, :name, 'ready', :address, :vcpus, :ram_bytes,"
            " :disk_bytes, :simulated, :now, :now, :region, :disk_used_bytes, :disk_limits, '')",
            id=id,
            region=REGION,
            simulated=int(simulated),
            **values,
        )
    _put_gpus(tx, HostId(known[0]) if known else id, report.gpus, now_us)
    return known is None


def _put_gpus(tx: Transaction, host_id: HostId, reports: Sequence[GpuReport], now_us: int) -> None:
    """A card that is not reported any more is kept, as not healthy, while an instance has it."""
    rows = tx.all("SELECT slot, instance_id, idle_since_us FROM host_gpu WHERE host_id = :id", id=host_id)
    known = {row[0]: (row[1], row[2]) for row in rows}
    for report in reports:
        values = {
            "host": host_id, "slot": report.slot, "kind": report.kind, "gpu": report.gpu, "name": report.name,
            "memory": report.memory_bytes, "healthy": int(report.healthy),
            "idle": (known.get(report.slot, (None, None))[1] or now_us) if report.idle else None,
        }  # fmt: skip
        tx.run(_UPDATE_GPU if report.slot in known else _INSERT_GPU, **values)
    for slot in known.keys() - {report.slot for report in reports}:
        if known[slot][0] is None:
            tx.run("DELETE FROM host_gpu WHERE host_id = :host AND slot = :slot", host=host_id, slot=slot)
        else:
            tx.run(
                "UPDATE host_gpu SET healthy = 0 WHERE host_id = :host AND slot = :slot",
                host=host_id,
                slot=slot,
            )


_UPDATE_GPU: Final = (
    "UPDATE host_gpu SET kind = :kind, gpu = :gpu, name = :name, memory_bytes = :memory, healthy = :healthy,"
    " idle_since_us = CAST(:idle AS BIGINT) WHERE host_id = :host AND slot = :slot"
)
_INSERT_GPU: Final = (
    "INSERT INTO host_gpu (host_id, slot, kind, gpu, name, memory_bytes, healthy, instance_id, idle_since_us)"
    " VALUES (:host, :slot, :kind, :gpu, :name, :memory, :healthy, NULL, CAST(:idle AS BIGINT))"
)


def idle_in_project(tx: Transaction, project: ProjectId) -> dict[str, Idle]:
    """The cards that running instances of a project have and do not use, by instance; idle from when it had them on."""
    rows = tx.all(
        "SELECT i.id, COUNT(*), MAX(g.idle_since_us), MAX(i.running_since_us) FROM instance i"
        " JOIN host_gpu g ON g.instance_id = i.id"
        " WHERE i.project_id = :project AND i.phase = 'running' AND g.idle_since_us IS NOT NULL GROUP BY i.id",
        project=project,
    )
    return {row[0]: Idle(int(row[1]), at_microseconds(max(row[2], row[3] or 0))) for row in rows}


# Rented hosts


def add_rented(tx: Transaction, host: Host) -> None:
    """A host for one instance, before its machine exists."""
    tx.run(
        f"INSERT INTO host ({_COLUMNS}, kind, type) VALUES (:id, :site, :name, :state, '', :vcpus, :ram_bytes,"
        " :disk_bytes, :simulated, :now, :now, :region, 0, 'hold', '', 'rented', :type)",
        id=host.id,
        site=host.site,
        name=host.name,
        state=host.state,
        vcpus=host.vcpus,
        ram_bytes=host.ram_bytes,
        disk_bytes=host.disk_bytes,
        simulated=int(host.simulated),
        now=microseconds(host.registered_at),
        region=host.region,
        type=host.type,
    )
    for gpu in host.gpus:
        values = {
            "host": host.id, "slot": gpu.slot, "kind": gpu.kind, "gpu": gpu.gpu, "name": gpu.name,
            "memory": gpu.memory_bytes, "healthy": 1, "idle": None,
        }  # fmt: skip
        tx.run(_INSERT_GPU, **values)


def note_token(tx: Transaction, id: HostId, token: str, now: datetime, *, grace: timedelta) -> None:
    """Remember that the provider is asked with a token. A time within `grace` stays: nothing was launched since."""
    tx.run(
        "UPDATE host SET token = :token, token_at_us = :now"
        " WHERE id = :id AND (token <> :token OR token_at_us <= :stale)",
        token=token,
        now=microseconds(now),
        stale=microseconds(now - grace),
        id=id,
    )


def note_made(tx: Transaction, id: HostId, *, remote_id: str, zone: str, now: datetime) -> None:
    """Remember which machine it is."""
    tx.run(
        "UPDATE host SET remote_id = :remote, zone = :zone, made_at_us = :now, seen_at_us = :now WHERE id = :id",
        remote=remote_id,
        zone=zone,
        now=microseconds(now),
        id=id,
    )


def set_cost(tx: Transaction, id: HostId, cost: HostCost) -> None:
    tx.run(
        "UPDATE host SET cost_micros_per_hour = :micros, cost_currency = :currency WHERE id = :id",
        micros=cost.micros_per_hour,
        currency=cost.currency,
        id=id,
    )


def move_rented(tx: Transaction, id: HostId, region: str) -> None:
    """Rent it anew, in this region: nothing is known about the new machine yet."""
    tx.run(
        "UPDATE host SET region = :region, zone = '', remote_id = '', address = '', endpoints = '', made_at_us = NULL,"
        " cost_micros_per_hour = NULL WHERE id = :id",
        region=region,
        id=id,
    )


def set_endpoints(
    tx: Transaction, id: HostId, *, address: str, login: str, endpoints: str, now: datetime
) -> None:
    """Where a rented machine is reached."""
    tx.run(
        "UPDATE host SET address = :address, login = :login, endpoints = :endpoints, seen_at_us = :now WHERE id = :id",
        address=address,
        login=login,
        endpoints=endpoints,
        now=microseconds(now),
        id=id,
    )


def give_back(tx: Transaction, id: str, now: datetime) -> None:
    """Mark a rented host as gone; nothing happens to an own one."""
    tx.run(
        "UPDATE host SET state = 'gone', gone_at_us = :now WHERE id = :id AND kind = 'rented' AND gone_at_us IS NULL",
        now=microseconds(now),
        id=id,
    )


def set_state(tx: Transaction, id: HostId, state: HostState) -> None:
    tx.run("UPDATE host SET state = :state WHERE id = :id", state=state, id=id)


def rename_only_host(tx: Transaction, site: str, name: str) -> str:
    """Give the one host of a site another name; the old one, or empty where nothing was changed."""
    rows = tx.all(
        "SELECT id, name FROM host WHERE site = :site AND simulated = 0 AND kind = 'own'", site=site
    )
    if len(rows) != 1 or rows[0][1] == name:
        return ""
    tx.run("UPDATE host SET name = :name WHERE id = :id", name=name, id=rows[0][0])
    return str(rows[0][1])


def is_away(tx: Transaction, id: str, *, unseen_since: datetime | None = None) -> bool:
    """Whether a host is recorded as away, or is an own one that no reading has found since a time."""
    found = tx.one(
        "SELECT 1 FROM host WHERE id = :id AND (state = 'away' OR (kind = 'own' AND seen_at_us < :us))",
        id=id,
        us=microseconds(unseen_since) if unseen_since else 0,
    )
    return found is not None


def set_allow_out(tx: Transaction, id: HostId, networks: Sequence[str]) -> None:
    tx.run("UPDATE host SET allow_out = :networks WHERE id = :id", networks=" ".join(networks), id=id)


def set_region(tx: Transaction, id: HostId, region: str) -> None:
    tx.run("UPDATE host SET region = :region WHERE id = :id", region=region, id=id)


def place_of(tx: Transaction, id: str) -> tuple[str, int]:
    """The region of a host, and when the hosts of its site were last read; empty and 0 if there is no such host."""
    row = tx.one(
        "SELECT h.region, (SELECT w.until_us FROM site_watch w WHERE w.site = h.site ORDER BY w.from_us DESC LIMIT 1)"
        " FROM host h WHERE h.id = :id",
        id=id,
    )
    return (str(row[0]), int(row[1] or 0)) if row else ("", 0)


def regions(tx: Transaction) -> tuple[str, ...]:
    """All regions in which there are hosts."""
    return tuple(row[0] for row in tx.all("SELECT DISTINCT region FROM host ORDER BY region"))


def mark_rented_seen(tx: Transaction, site: str, names: Iterable[str], now: datetime) -> None:
    """Of rented hosts that a listing of their site has shown."""
    tx.run_many(
        "UPDATE host SET seen_at_us = :now WHERE site = :site AND name = :name AND kind = 'rented'",
        [(microseconds(now), site, name) for name in names],
    )


def mark_seen(
    tx: Transaction, site: str, names: Collection[str], now: datetime, *, all_of_site: bool
) -> None:
    """Of these hosts alone: when one that is lost was last seen is when its instances cease to be charged."""
    now_us = microseconds(now)
    if all_of_site:  # one statement where every host answers, as most of the time
        tx.run("UPDATE host SET seen_at_us = :now WHERE site = :site AND kind = 'own'", now=now_us, site=site)
    else:
        tx.run_many(
            "UPDATE host SET seen_at_us = :now WHERE site = :site AND name = :name",
            [(now_us, site, name) for name in names],
        )


def rooms(
    tx: Transaction,
    policy: Policy,
    *,
    only: HostId | None = None,
    site: str = "",
    ready: bool = True,
    empty: bool = False,
) -> list[Room]:
    """What every own host has left, or would have with nothing on it (`empty`); of one host or site if it is named."""
    narrowed = (" AND id = :only" if only else "") + (" AND site = :site" if site else "")
    states = "('ready')" if ready else "('ready', 'draining', 'away')"
    rows = tx.all(
        "SELECT id, name, site, vcpus, ram_bytes, disk_bytes FROM host"
        f" WHERE kind = 'own' AND state IN {states}{narrowed}",
        **({"only": only} if only else {}),
        **({"site": site} if site else {}),
    )
    held = {} if empty else _held(tx, only)
    free, total = _free_gpus(tx, only, empty=empty)
    found = []
    for id, name, site, vcpus, ram, disk in rows:
        vcpus_held, ram_held, disk_held = held.get(id, (0, 0, 0))
        found.append(
            Room(
                host_id=HostId(id),
                name=name,
                site=site,
                threads=vcpus,
                vcpus=int(vcpus * policy.vcpu_overcommit) - vcpus_held,
                ram_bytes=ram - RAM_BYTES_OF_HOUSE - ram_held,
                disk_bytes=int(disk * policy.disk_overcommit) - disk_held,
                free_gpus=free.get(id, {}),
                gpus_total=total.get(id, 0),
            )
        )
    return found


def _held(tx: Transaction, only: HostId | None = None) -> dict[str, tuple[int, int, int]]:
    if only:
        rows = tx.all(f"{_HELD} AND host_id = :only GROUP BY host_id", only=only)
    else:
        rows = tx.all(f"{_HELD} GROUP BY host_id")
    return {row[0]: (int(row[1]), int(row[2]), int(row[3])) for row in rows}


def _free_gpus(
    tx: Transaction, only: HostId | None, *, empty: bool
) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    narrowed = " WHERE host_id = :only" if only else ""
    rows = tx.all(
        "SELECT host_id, gpu, COUNT(*), SUM(CASE WHEN instance_id IS NULL AND healthy = 1 THEN 1 ELSE 0 END)"
        f" FROM host_gpu{narrowed} GROUP BY host_id, gpu",
        **({"only": only} if only else {}),
    )
    free: dict[str, dict[str, int]] = defaultdict(dict)
    total: dict[str, int] = defaultdict(int)
    for host_id, gpu, count, unused in rows:
        free[host_id][gpu] = int(count if empty else unused)
        total[host_id] += int(count)
    return free, total


CANDIDATES_MAX: Final = 24
"""Hosts that a launch tries before it waits for one: more than the threads of a server that may launch at once."""


def lock_hosts(tx: Transaction, ids: Collection[HostId]) -> None:
    """For whoever takes something of these hosts: until the transaction ends, nobody else does."""
    for id in sorted(set(ids)):
        tx.lock("SELECT id FROM host WHERE id = :id", id=id)


def lock_one_host(tx: Transaction, ids: Sequence[HostId], *, waits: bool) -> HostId | None:
    """Lock the first of these hosts that nobody else has locked. Where others have all: wait for the first, or None."""
    few = [*ids[:CANDIDATES_MAX], *([ids[0]] * (CANDIDATES_MAX - len(ids)))]
    rows = tx.lock_free(_FIRST_FREE, **{f"i{n}": id for n, id in enumerate(few)})
    if rows:
        return HostId(rows[0][0])
    if not waits:
        return None
    lock_hosts(tx, ids[:1])
    return ids[0]


_FIRST_FREE: Final = (
    f"SELECT id FROM host WHERE id IN ({', '.join(f':i{n}' for n in range(CANDIDATES_MAX))}) ORDER BY CASE id"
    f" {' '.join(f'WHEN :i{n} THEN {n}' for n in range(CANDIDATES_MAX))} END, id LIMIT 1"
)


def take_gpus(
    tx: Transaction, host_id: HostId, gpu: str, count: int, instance_id: str
) -> list[tuple[str, str]]:
    """Give `count` free cards of a host to an instance; fewer where there are fewer. Their slots and kinds."""
    rows = tx.all(
        "UPDATE host_gpu SET instance_id = :instance WHERE host_id = :host AND instance_id IS NULL AND slot IN"
        " (SELECT slot FROM host_gpu WHERE host_id = :host AND gpu = :gpu AND instance_id IS NULL AND healthy = 1"
        " ORDER BY slot LIMIT :count) RETURNING slot, kind",
        instance=instance_id,
        host=host_id,
        gpu=gpu,
        count=count,
    )
    return sorted((row[0], row[1]) for row in rows)


def release_gpus(tx: Transaction, instance_id: str, *, keep: Iterable[str] = ()) -> None:
    kept = set(keep)
    for host_id, slot in tx.all(
        "SELECT host_id, slot FROM host_gpu WHERE instance_id = :id ORDER BY host_id, slot", id=instance_id
    ):
        if slot not in kept:
            tx.run(
                "UPDATE host_gpu SET instance_id = NULL WHERE host_id = :host AND slot = :slot",
                host=host_id,
                slot=slot,
            )


def taken_ports(tx: Transaction, host_id: HostId) -> set[int]:
    return {row[0] for row in tx.all("SELECT port FROM host_port WHERE host_id = :host", host=host_id)}


def take_port(tx: Transaction, host_id: HostId, port: int, guest_port: int, instance_id: str) -> None:
    tx.run(
        "INSERT INTO host_port (host_id, port, guest_port, instance_id) VALUES (:host, :port, :guest, :instance)",
        host=host_id,
        port=port,
        guest=guest_port,
        instance=instance_id,
    )


def release_ports(tx: Transaction, instance_id: str) -> None:
    tx.run("DELETE FROM host_port WHERE instance_id = :id", id=instance_id)


def _with_parts(tx: Transaction, rows: Sequence[Row]) -> tuple[Host, ...]:
    only = HostId(rows[0][0]) if len(rows) == 1 else None
    held = _held(tx, only) if rows else {}
    gpus: dict[str, list[Gpu]] = defaultdict(list)
    if rows:
        for row in tx.all(
            "SELECT host_id, slot, kind, gpu, name, memory_bytes, healthy, instance_id FROM host_gpu"
            " WHERE host_id >= :first AND host_id <= :last ORDER BY host_id, slot",
            first=min(row[0] for row in rows),
            last=max(row[0] for row in rows),
        ):
            gpus[row[0]].append(_gpu_from(row))
    return tuple(_host_from(row, held.get(row[0], (0, 0, 0)), tuple(gpus[row[0]])) for row in rows)


def _gpu_from(row: Row) -> Gpu:
    _, slot, kind, gpu, name, memory_bytes, healthy, instance_id = row
    return Gpu(
        slot=slot,
        kind=GpuKind(kind),
        gpu=gpu,
        name=name,
        memory_bytes=memory_bytes,
        healthy=bool(healthy),
        instance_id=instance_id,
    )


def _host_from(row: Row, held: tuple[int, int, int], gpus: tuple[Gpu, ...]) -> Host:
    id, site, name, state, address, vcpus, ram, disk, simulated, registered_at_us, seen_at_us, region = row[
        :12
    ]
    disk_used, disk_limits, allow_out = row[12:15]
    kind, type, zone, remote_id, login, token, token_at_us, made_at_us, gone_at_us, cost_micros, currency = (
        row[15:]
    )
    return Host(
        id=HostId(id),
        site=site,
        name=name,
        state=HostState(state),
        address=address,
        vcpus=vcpus,
        ram_bytes=ram,
        disk_bytes=disk,
        disk_used_bytes=disk_used,
        disk_limits=DiskLimits(disk_limits),
        allow_out=tuple(allow_out.split()),
        simulated=bool(simulated),
        region=region,
        registered_at=at_microseconds(registered_at_us),
        seen_at=at_microseconds(seen_at_us),
        gpus=gpus,
        kind=HostKind(kind),
        type=type,
        zone=zone,
        remote_id=remote_id,
        login=login,
        token=token,
        token_at=at_microseconds(token_at_us) if token_at_us is not None else None,
        made_at=at_microseconds(made_at_us) if made_at_us is not None else None,
        gone_at=at_microseconds(gone_at_us) if gone_at_us is not None else None,
        cost=HostCost(micros_per_hour=cost_micros, currency=currency) if cost_micros is not None else None,
        vcpus_held=held[0],
        ram_bytes_held=held[1],
        disk_bytes_held=held[2],
    )
