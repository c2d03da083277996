"""All SQL about hosts. What is held on a host is summed from its instances, so the two cannot disagree."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Final

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.fleet.card import store as cards
from teraflock.fleet.label import store as labels
from teraflock.fleet.model import Gpu, GpuKind, Host, HostId, HostKind, HostReport, HostState
from teraflock.fleet.placement import RAM_BYTES_OF_HOST, Policy
from teraflock.fleet.room import Room
from teraflock.fleet.rows import COLUMNS, HOST, STATES, host_from
from teraflock.fleet.slicing import store as slicing
from teraflock.fleet.slicing.rules import withheld
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import in_list

_HELD: Final = (
    "SELECT host_id, SUM(held_vcpus), SUM(held_ram_bytes), SUM(held_disk_bytes) FROM instance"
    " WHERE host_id IS NOT NULL"
)
_KINDS: Final = (
    "SELECT MIN(h.id), COALESCE(g.low, ''), COALESCE(g.high, ''), COALESCE(g.cards, 0), COUNT(*),"
    " h.vcpus, h.ram_bytes, h.disk_bytes FROM host h LEFT JOIN (SELECT host_id,"
    " MIN(gpu) AS low, MAX(gpu) AS high, COUNT(*) AS cards FROM host_gpu GROUP BY host_id) g ON g.host_id = h.id"
    " WHERE h.kind = 'own' AND h.state <> 'gone' GROUP BY h.vcpus, h.ram_bytes, h.disk_bytes, g.low, g.high, g.cards,"
    " CASE WHEN COALESCE(g.low, '') = COALESCE(g.high, '') THEN '' ELSE h.id END ORDER BY MIN(h.id)"
)
_REPORTED: Final = (
    "address", "vcpus", "ram_bytes", "disk_bytes", "disk_used_bytes", "disk_limits", "seen_at_us",
)  # fmt: skip
_PUT_REPORT: Final = HOST.upsert("site", "name", change=_REPORTED)


def hosts(
    tx: Transaction, *, after: str = "", limit: int, kind: HostKind | None = HostKind.OWN
) -> tuple[Host, ...]:
    """A page of hosts of one kind, or of all kinds."""
    rows = tx.all(
        f"SELECT {COLUMNS} FROM host WHERE id > :after AND (:kind = '' OR kind = :kind)"
        " AND NOT (kind = 'own' AND state = 'gone') ORDER BY id LIMIT :limit",
        after=after,
        kind=kind or "",
        limit=limit,
    )
    return _with_parts(tx, rows)


def outlines(tx: Transaction) -> tuple[Host, ...]:
    """All own hosts with the GPU models of their cards, without slots and holders: several times as fast."""
    found: dict[str, list[Gpu]] = defaultdict(list)
    for host_id, gpu, count in tx.all(
        "SELECT g.host_id, g.gpu, COUNT(*) FROM host_gpu g JOIN host h ON h.id = g.host_id WHERE h.kind = 'own'"
        " GROUP BY g.host_id, g.gpu"
    ):
        found[host_id] += [_gpu_outline(gpu)] * count
    rows = tx.all(f"SELECT {COLUMNS} FROM host WHERE kind = 'own' AND state <> 'gone' ORDER BY id")
    return tuple(host_from(row, gpus=tuple(found[row[0]])) for row in rows)


def places(
    tx: Transaction, gpu: str, gpus: int, *, apart: Sequence[str], host: str = "", site: str = ""
) -> list[tuple[str, str]]:
    """The regions of the own hosts with at least so many cards of a model: all, one host, or those of a site. Hosts in
    `apart` have a row of their own with their id."""
    marks, ids = in_list([*apart, ""])
    rows = tx.all(
        f"SELECT DISTINCT CASE WHEN h.id IN ({marks}) THEN h.id ELSE '' END AS apart, h.region FROM host h"
        " WHERE h.kind = 'own' AND h.state <> 'gone'"
        " AND (:host = '' OR h.id = :host OR h.name = :host) AND (:site = '' OR h.site = :site)"
        " AND (:gpus = 0 OR h.id IN (SELECT g.host_id FROM host_gpu g WHERE g.gpu = :gpu GROUP BY g.host_id"
        " HAVING COUNT(*) >= :gpus)) ORDER BY apart, h.region",
        gpu=gpu,
        gpus=gpus,
        host=host,
        site=site,
        **ids,
    )
    return [(row[0], row[1]) for row in rows]


def at_site(tx: Transaction, site: str) -> tuple[Host, ...]:
    """The own hosts of a site, without cards and labels. A loop reads every site all the time."""
    rows = tx.all(f"SELECT {COLUMNS} FROM host WHERE kind = 'own' AND site = :site ORDER BY id", site=site)
    return tuple(map(host_from, rows))


def full_at_site(tx: Transaction, site: str, share: float) -> set[str]:
    """The names of the own hosts of a site with more than this share of their disk in use."""
    rows = tx.all(
        "SELECT name FROM host WHERE kind = 'own' AND state <> 'gone' AND site = :site"
        " AND disk_used_bytes > 0 AND disk_used_bytes > :share * disk_bytes",
        site=site,
        share=share,
    )
    return {row[0] for row in rows}


def names_at_site(tx: Transaction, site: str) -> set[str]:
    return {row[0] for row in tx.all("SELECT name FROM host WHERE kind = 'own' AND site = :site", site=site)}


def identities_at_site(tx: Transaction, site: str) -> list[Row]:
    """What tells the hosts of a site and their guests apart: id, kind, name, state, and of a rented one its machine."""
    return tx.all(
        "SELECT id, kind, name, state, made_at_us, remote_id FROM host WHERE site = :site ORDER BY id",
        site=site,
    )


def removed_names_at_site(tx: Transaction, site: str) -> set[str]:
    """The names of hosts that were removed."""
    rows = tx.all("SELECT name FROM host WHERE kind = 'own' AND site = :site AND state = 'gone'", site=site)
    return {row[0] for row in rows}


def removed(tx: Transaction) -> frozenset[HostId]:
    """The own hosts that were removed."""
    return frozenset(
        HostId(row[0]) for row in tx.all("SELECT id FROM host WHERE kind = 'own' AND state = 'gone'")
    )


def kinds_of_hosts(tx: Transaction) -> tuple[Host, ...]:
    """One host for all that have the same size and cards. Only its size, its cards and `alike` have a meaning."""
    rows = tx.all(_KINDS)
    counts: dict[str, list[tuple[str, int]]] = defaultdict(list)
    if any(row[1] != row[2] for row in rows):  # hosts with cards of several kinds
        for host_id, gpu, count in tx.all(
            "SELECT host_id, gpu, COUNT(*) FROM host_gpu GROUP BY host_id, gpu ORDER BY host_id, gpu"
        ):
            counts[host_id].append((gpu, count))
    return tuple(_kind_from(row, [(row[1], row[3])] if row[1] == row[2] else counts[row[0]]) for row in rows)


def _kind_from(row: Row, gpus: Sequence[tuple[str, int]]) -> Host:
    id, _, _, _, alike, vcpus, ram_bytes, disk_bytes = row
    return Host(
        id=HostId(id),
        site="",
        name="",
        state=HostState.READY,
        address="",
        vcpus=vcpus,
        ram_bytes=ram_bytes,
        disk_bytes=disk_bytes,
        simulated=False,
        registered_at=at_microseconds(0),
        seen_at=at_microseconds(0),
        gpus=tuple(_gpu_outline(gpu) for gpu, count in gpus for _ in range(count)),
        alike=alike,
    )


@cache
def _gpu_outline(gpu: str) -> Gpu:
    return Gpu(
        slot="", kind=GpuKind.PHYSICAL, gpu=gpu, name="", memory_bytes=0, healthy=True, instance_id=None
    )


def host(tx: Transaction, ref: str) -> Host | None:
    """Find a host by id, or by the name that its engine uses."""
    row = tx.one(f"SELECT {COLUMNS} FROM host WHERE id = :ref OR name = :ref ORDER BY id", ref=ref)
    return _with_parts(tx, [row])[0] if row else None


def put_report(
    tx: Transaction, site: str, report: HostReport, id: HostId, *, simulated: bool, now: datetime
) -> bool:
    """Write the report of a host. Its state and the holders of its cards stay the same. Return whether it is new."""
    known = tx.one(
        "SELECT id, state, drained FROM host WHERE site = :site AND name = :name", site=site, name=report.name
    )
    tx.run_many(_PUT_REPORT, [HOST.row(_new_host(site, report, id, simulated=simulated, now=now))])
    host_id = HostId(known[0]) if known else id
    if known and known[1] in (HostState.AWAY, HostState.GONE):
        state = HostState.DRAINING if known[2] else HostState.READY
        STATES.move(tx, state, "id = :id", columns={"gone_at_us": None}, id=host_id)
    gpus = withheld(report.gpus, slicing.of_host(tx, host_id)) if known else report.gpus
    cards.put_reported(tx, host_id, gpus, microseconds(now))
    return known is None


def _new_host(site: str, report: HostReport, id: HostId, *, simulated: bool, now: datetime) -> Host:
    return Host(
        id=id,
        site=site,
        name=report.name,
        state=HostState.READY,
        address=report.address,
        vcpus=report.vcpus,
        ram_bytes=report.ram_bytes,
        disk_bytes=report.disk_bytes,
        disk_used_bytes=report.disk_used_bytes,
        disk_limits=report.disk_limits,
        simulated=simulated,
        registered_at=now,
        seen_at=now,
    )


def set_drained(tx: Transaction, id: HostId, drained: bool, *, drain_at: datetime | None = None) -> None:
    """Drain a host, or let it take instances again. `drain_at` is when instances that may move are moved from it.

    A host that is away stays away, and has the new state when it returns. One that was removed stays removed.
    """
    tx.run(
        "UPDATE host SET drained = :drained, drain_at_us = :drain_at WHERE id = :id AND state <> 'gone'",
        drained=int(drained),
        drain_at=microseconds(drain_at) if drain_at else None,
        id=id,
    )
    state = HostState.DRAINING if drained else HostState.READY
    STATES.move(tx, state, "id = :id AND state <> 'away' AND state <> 'gone'", id=id)


def mark_away(tx: Transaction, id: HostId) -> None:
    STATES.move(tx, HostState.AWAY, "id = :id", id=id)


def mark_removed(tx: Transaction, id: HostId, now: datetime) -> None:
    """Keep the row of a host that was removed, for bills and audits. If it joins again, it gets the row back."""
    columns = {"gone_at_us": microseconds(now), "drained": 0, "drain_at_us": None}
    STATES.move(tx, HostState.GONE, "id = :id", columns=columns, id=id)


def rename_only_host(tx: Transaction, site: str, name: str) -> str:
    """Rename the only host of a site. Return its old name, or an empty text if nothing was changed."""
    rows = tx.all(
        "SELECT id, name FROM host WHERE site = :site AND simulated = 0 AND kind = 'own'", site=site
    )
    if len(rows) != 1 or rows[0][1] == name:
        return ""
    tx.run("UPDATE host SET name = :name WHERE id = :id", name=name, id=rows[0][0])
    return str(rows[0][1])


def is_away(tx: Transaction, id: str, *, unseen_since: datetime | None = None) -> bool:
    """Whether a host is recorded as away, or is an own host that was not seen since a certain time."""
    found = tx.one(
        "SELECT 1 FROM host WHERE id = :id AND (state = 'away' OR (kind = 'own' AND seen_at_us < :us))",
        id=id,
        us=microseconds(unseen_since) if unseen_since else 0,
    )
    return found is not None


def is_unseen(tx: Transaction, id: str, since: datetime) -> bool:
    """Whether a host was not seen since a certain time."""
    row = tx.one("SELECT 1 FROM host WHERE id = :id AND seen_at_us < :us", id=id, us=microseconds(since))
    return row is not None


def draining(tx: Transaction) -> list[tuple[HostId, str, str, datetime]]:
    """Id, site, name and deadline of the hosts that are drained with a deadline."""
    rows = tx.all(
        "SELECT id, site, name, drain_at_us FROM host WHERE kind = 'own' AND state = 'draining'"
        " AND drain_at_us IS NOT NULL ORDER BY id"
    )
    return [(HostId(id), site, name, at_microseconds(at)) for id, site, name, at in rows]


def set_allow_out(tx: Transaction, id: HostId, networks: Sequence[str]) -> None:
    tx.run("UPDATE host SET allow_out = :networks WHERE id = :id", networks=" ".join(networks), id=id)


def set_region(tx: Transaction, id: HostId, region: str) -> None:
    tx.run("UPDATE host SET region = :region WHERE id = :id", region=region, id=id)


def place_of(tx: Transaction, id: str) -> tuple[str, int]:
    """The region of a host, and when the hosts of its site were last read. Empty and 0 for an unknown host."""
    row = tx.one(
        "SELECT h.region, (SELECT w.until_us FROM site_watch w WHERE w.site = h.site ORDER BY w.from_us DESC LIMIT 1)"
        " FROM host h WHERE h.id = :id",
        id=id,
    )
    return (str(row[0]), int(row[1] or 0)) if row else ("", 0)


def regions(tx: Transaction) -> tuple[str, ...]:
    """All regions that have hosts."""
    return tuple(row[0] for row in tx.all("SELECT DISTINCT region FROM host ORDER BY region"))


def mark_seen(
    tx: Transaction, site: str, names: Collection[str], now: datetime, *, all_of_site: bool
) -> None:
    """Mark only these hosts: instances of a lost host are charged until it was last seen."""
    now_us = microseconds(now)
    if all_of_site:  # usually every host answers: one statement
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
    labelled: bool = False,
    queued_id: str = "",
) -> list[Room]:
    """The free room of own hosts, or all their room if `empty`. `only` and `site` select one host or one site.

    `ready`: only hosts that take new instances, without those that are reserved for other launches than `queued_id`.
    """
    narrowed = (" AND h.id = :only" if only else "") + (" AND h.site = :site" if site else "")
    usable = " AND h.state = 'ready' AND (r.queued_id IS NULL OR r.queued_id = :queued)"
    rows = tx.all(
        "SELECT h.id, h.name, h.site, h.vcpus, h.ram_bytes, h.disk_bytes, h.region, h.state,"
        " COALESCE(r.queued_id, '') FROM host h LEFT JOIN host_reservation r ON r.host_id = h.id"
        f" WHERE h.kind = 'own' AND h.state <> 'gone'{usable if ready else ''}{narrowed}",
        **({"only": only} if only else {}),
        **({"site": site} if site else {}),
        **({"queued": queued_id} if ready else {}),
    )
    labels_of = labels.by_host(tx) if labelled else {}
    held = {} if empty else _held(tx, only)
    free, total = _free_gpus(tx, only, empty=empty)
    found = []
    for id, name, site, vcpus, ram, disk, region, state, queued in rows:
        vcpus_held, ram_held, disk_held = held.get(id, (0, 0, 0))
        found.append(
            Room(
                host_id=HostId(id),
                name=name,
                site=site,
                threads=vcpus,
                vcpus=int(vcpus * policy.vcpu_overcommit) - vcpus_held,
                ram_bytes=ram - RAM_BYTES_OF_HOST - ram_held,
                disk_bytes=int(disk * policy.disk_overcommit) - disk_held,
                free_gpus=free.get(id, {}),
                gpus_total=total.get(id, 0),
                ram_bytes_total=ram - RAM_BYTES_OF_HOST,
                region=region,
                labels=labels_of.get(id, {}),
                state=HostState(state),
                reserved_for=queued,
            )
        )
    return found


def rooms_to_divide(tx: Transaction, policy: Policy, *, empty: bool = False) -> list[Room]:
    """The rooms of all own hosts without their reservations, for the queue and the auctions: they decide those anew."""
    found = rooms(tx, policy, ready=False, labelled=True, empty=empty)
    for room in found:
        room.reserved_for = ""
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


CANDIDATES_FEW: Final = 4
"""How many hosts a launch tries first. PostgreSQL compares every host with each of them."""
CANDIDATES_MAX: Final = 24
"""How many hosts a launch tries before it waits for one. More than the threads of a server that launch at once."""


def lock_hosts(tx: Transaction, ids: Collection[HostId]) -> None:
    """Lock hosts until the transaction ends, before something on them is claimed."""
    for id in sorted(set(ids)):
        tx.lock("SELECT id FROM host WHERE id = :id", id=id)


def lock_one_host(tx: Transaction, ids: Sequence[HostId], *, waits: bool) -> HostId | None:
    """Lock the first of these hosts that is not locked. If all are: wait for the first one, or return None."""
    for count in (CANDIDATES_FEW, CANDIDATES_MAX):
        some = [*ids[:count], *([ids[0]] * (count - len(ids)))]
        if rows := tx.lock_free(_first_free(count), **{f"i{n}": id for n, id in enumerate(some)}):
            return HostId(rows[0][0])
    if not waits:
        return None
    lock_hosts(tx, ids[:1])
    return ids[0]


@cache
def _first_free(count: int) -> str:
    numbers = range(count)
    return (
        f"SELECT id FROM host WHERE id IN ({', '.join(f':i{n}' for n in numbers)}) ORDER BY CASE id"
        f" {' '.join(f'WHEN :i{n} THEN {n}' for n in numbers)} END, id LIMIT 1"
    )


def _with_parts(tx: Transaction, rows: Sequence[Row]) -> tuple[Host, ...]:
    only = HostId(rows[0][0]) if len(rows) == 1 else None
    held = _held(tx, only) if rows else {}
    gpus = cards.of_hosts(tx, [row[0] for row in rows]) if rows else {}
    labels_of = labels.by_host(tx, only) if rows else {}
    return tuple(
        host_from(row, held.get(row[0], (0, 0, 0)), tuple(gpus.get(row[0], ())), labels_of.get(row[0], {}))
        for row in rows
    )


def names(tx: Transaction, ids: Sequence[HostId]) -> dict[HostId, str]:
    """The names of hosts, by id."""
    if not ids:
        return {}
    marks, values = in_list(ids)
    return {
        HostId(id): name for id, name in tx.all(f"SELECT id, name FROM host WHERE id IN ({marks})", **values)
    }
