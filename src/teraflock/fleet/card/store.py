"""All SQL about the cards of hosts and the instances that hold them.

A card's row names at most one instance, so two instances never hold the same card.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from teraflock.base.clock import at_microseconds
from teraflock.base.filling import filled
from teraflock.fleet.card.rules import neighbours
from teraflock.fleet.fragmentation import CardBlock
from teraflock.fleet.model import Gpu, GpuKind, GpuReport, HostId, Idle
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table, in_list
from teraflock.tenant.model import ProjectId

_GPU: Final = Table("host_gpu", Gpu)
_PUT_GPU: Final = (
    f"{_GPU.insert_with('host_id', 'idle_since_us')} ON CONFLICT (host_id, slot) DO UPDATE SET"
    " kind = excluded.kind, gpu = excluded.gpu, name = excluded.name, memory_bytes = excluded.memory_bytes,"
    " healthy = excluded.healthy, near = excluded.near, idle_since_us = excluded.idle_since_us"
)


def put_reported(tx: Transaction, host_id: HostId, reports: Sequence[GpuReport], now_us: int) -> None:
    """Write the cards that a host reports. A missing card is kept as not healthy while an instance holds it."""
    rows = tx.all("SELECT slot, instance_id, idle_since_us FROM host_gpu WHERE host_id = :id", id=host_id)
    known = {row[0]: (row[1], row[2]) for row in rows}
    for report in reports:
        _, idle_since_us = known.get(report.slot, (None, None))
        add(tx, host_id, _card_of(report), (idle_since_us or now_us) if report.idle else None)
    for slot in known.keys() - {report.slot for report in reports}:
        if known[slot][0] is None:
            tx.run("DELETE FROM host_gpu WHERE host_id = :host AND slot = :slot", host=host_id, slot=slot)
        else:
            tx.run(
                "UPDATE host_gpu SET healthy = 0 WHERE host_id = :host AND slot = :slot",
                host=host_id,
                slot=slot,
            )


def _card_of(report: GpuReport) -> Gpu:
    return filled(Gpu, report, instance_id=None)


def add(tx: Transaction, host_id: HostId, card: Gpu, idle_since_us: int | None = None) -> None:
    """Add a card, or update it. The instance that holds it stays the same."""
    values = dict(zip(_GPU.columns, _GPU.row(card), strict=True))
    tx.run(_PUT_GPU, host_id=host_id, idle_since_us=idle_since_us, **values)


def blocks(tx: Transaction) -> list[CardBlock]:
    """The cards of own hosts that take new instances, counted over hosts that are alike."""
    rows = tx.all(
        "SELECT gpu, cards, free, broken, COUNT(*) FROM (SELECT g.gpu, COUNT(*) AS cards,"
        " SUM(CASE WHEN g.healthy = 1 AND g.instance_id IS NULL THEN 1 ELSE 0 END) AS free,"
        " SUM(CASE WHEN g.healthy = 1 THEN 0 ELSE 1 END) AS broken"
        " FROM host_gpu g JOIN host h ON h.id = g.host_id WHERE h.kind = 'own' AND h.state = 'ready'"
        " GROUP BY g.host_id, g.gpu) AS cards_of_host GROUP BY gpu, cards, free, broken ORDER BY gpu, free"
    )
    return [
        CardBlock(gpu, int(cards), int(free), int(broken), int(hosts))
        for gpu, cards, free, broken, hosts in rows
    ]


def withhold(tx: Transaction, host_id: HostId, address: str) -> None:
    """Give a card and its slices to no new instance, until its host reports it again."""
    tx.run(
        "UPDATE host_gpu SET healthy = 0 WHERE host_id = :host AND (slot = :address OR slot LIKE :slices)",
        host=host_id,
        address=address,
        slices=f"{address}/%",
    )


def idle_in_project(tx: Transaction, project: ProjectId) -> dict[str, Idle]:
    """The cards that running instances of a project hold and do not use, by instance. Idle time begins with the run."""
    rows = tx.all(
        "SELECT i.id, COUNT(*), MAX(g.idle_since_us), MAX(i.running_since_us) FROM instance i"
        " JOIN host_gpu g ON g.instance_id = i.id"
        " WHERE i.project_id = :project AND i.phase = 'running' AND g.idle_since_us IS NOT NULL GROUP BY i.id",
        project=project,
    )
    return {row[0]: Idle(int(row[1]), at_microseconds(max(row[2], row[3] or 0))) for row in rows}


def take_gpus(
    tx: Transaction, host_id: HostId, gpu: str, count: int, instance_id: str
) -> list[tuple[str, str]]:
    """Give up to `count` free cards of a host to an instance, neighbours if possible. Return their slots and kinds."""
    free = tx.all(
        "SELECT slot, near FROM host_gpu WHERE host_id = :host AND gpu = :gpu AND instance_id IS NULL AND healthy = 1",
        host=host_id,
        gpu=gpu,
    )
    slots = neighbours([(slot, near) for slot, near in free], count)
    if not slots:
        return []
    marks, values = in_list(slots)
    rows = tx.all(
        "UPDATE host_gpu SET instance_id = :instance WHERE host_id = :host AND instance_id IS NULL"
        f" AND slot IN ({marks}) RETURNING slot, kind",
        instance=instance_id,
        host=host_id,
        **values,
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


def of_hosts(tx: Transaction, ids: Sequence[str]) -> Mapping[str, Sequence[Gpu]]:
    """The cards of each host, in the order of their slots."""
    return _by_host(tx, "host_id >= :first AND host_id <= :last", first=min(ids), last=max(ids))


def of_divided_hosts(tx: Transaction) -> Mapping[str, Sequence[Gpu]]:
    """The same for the hosts that have cards to divide."""
    return _by_host(tx, "host_id IN (SELECT host_id FROM host_slicing)")


def _by_host(tx: Transaction, where: str, **values: object) -> Mapping[str, Sequence[Gpu]]:
    found: dict[str, list[Gpu]] = defaultdict(list)
    rows = tx.all(
        f"SELECT host_id, {_GPU.names} FROM host_gpu WHERE {where} ORDER BY host_id, slot", **values
    )
    for row in rows:
        found[row[0]].append(_GPU.value(row[1:]))
    return found


def held_by(tx: Transaction, instance_ids: Sequence[str]) -> list[tuple[str, str, GpuKind, str]]:
    """The instance, slot, kind and GPU model of each card that these instances hold, sorted."""
    marks, values = in_list(instance_ids)
    rows = tx.all(
        f"SELECT instance_id, slot, kind, gpu FROM host_gpu WHERE instance_id IN ({marks})", **values
    )
    return [(id, slot, GpuKind(kind), gpu) for id, slot, kind, gpu in sorted(rows)]


def held_on_site(tx: Transaction, site: str) -> list[Row]:
    """The instance and the slot of every held card at a site."""
    return tx.all(
        "SELECT g.instance_id, g.slot FROM host_gpu g JOIN host h ON h.id = g.host_id"
        " WHERE h.site = :site AND g.instance_id IS NOT NULL",
        site=site,
    )


def slots_by_instance(rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """The slots of the cards of each instance, sorted."""
    found: dict[str, tuple[str, ...]] = {}
    for id, slot in sorted(rows):  # not in SQL: databases sort text differently
        found[id] = (*found.get(id, ()), slot)
    return found


def holders(tx: Transaction, host_ids: Iterable[HostId]) -> dict[HostId, dict[str, str]]:
    """The instances that hold cards of these hosts, by host and slot."""
    wanted = sorted(host_ids)
    found: dict[HostId, dict[str, str]] = {}
    if not wanted:
        return found
    rows = tx.all(
        "SELECT host_id, slot, instance_id FROM host_gpu WHERE instance_id IS NOT NULL"
        " AND host_id >= :first AND host_id <= :last",
        first=wanted[0],
        last=wanted[-1],
    )
    for host_id, slot, instance_id in rows:
        found.setdefault(HostId(host_id), {})[slot] = instance_id
    return found
