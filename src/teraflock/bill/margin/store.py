"""All SQL of host costs. Only operators and the biller's loop use it, so reads cross tenants."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from teraflock.base.clock import DAY_US
from teraflock.bill.margin.model import CostLine, CostRate, HostSize, HostUse, OpenUse
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table, in_list, number
from teraflock.tenant.model import ProjectId

_RATE: Final = Table("host_cost", CostRate)
_SIZE: Final = Table("host_size", HostSize, embed={"whole": ""})
_USE: Final = Table("host_use", HostUse, embed={"held": ""})
_OPEN: Final = Table("host_use_open", OpenUse, embed={"held": ""})
_LINE: Final = Table("cost", CostLine)


class CostCursor(msgspec.Struct, frozen=True, kw_only=True):
    rates: int = 0
    lines: int = 0


class RevenueSum(msgspec.Struct, frozen=True):
    """The charges of one day for one subject on one host."""

    subject: str
    name: str
    project_id: ProjectId
    host_id: str
    currency: str
    day: int
    micros: int


class CostSum(msgspec.Struct, frozen=True):
    """The costs of one day of one host for one instance, or while idle."""

    host_id: str
    instance_id: str
    project_id: ProjectId
    currency: str
    day: int
    micros: int


_CURSOR: Final = Table("cost_cursor", CostCursor)


def hold(tx: Transaction) -> CostCursor:
    """Lock the cursor and return it. A second writer waits here before it assigns numbers."""
    tx.run("UPDATE cost_cursor SET name = name WHERE name = 'cost'")
    return _cursor(tx)


def _cursor(tx: Transaction) -> CostCursor:
    return _CURSOR.one(tx, "WHERE name = 'cost'") or CostCursor()


# -- rates -------------------------------------------------------------------------------------------------------------


def add_rate(tx: Transaction, rate: CostRate) -> int:
    """Record the cost of a host and return its number. Booked days that it changes are booked again."""
    number = hold(tx).rates + 1
    tx.run_many(_RATE.insert_with("number"), [(number, *_RATE.row(rate))])
    tx.run("UPDATE cost_cursor SET rates = :number WHERE name = 'cost'", number=number)
    tx.run(
        "INSERT INTO cost_host (host_id, booked_until_us) VALUES (:host, :day_us) ON CONFLICT (host_id) DO UPDATE"
        " SET booked_until_us = excluded.booked_until_us"
        " WHERE cost_host.booked_until_us > excluded.booked_until_us",
        host=rate.host_id,
        day_us=rate.from_us // DAY_US * DAY_US,
    )
    return number


def rates(tx: Transaction, host_id: str) -> tuple[CostRate, ...]:
    """All recorded costs of a host, in order."""
    return _RATE.all(tx, "WHERE host_id = :host ORDER BY number", host=host_id)


def rates_of_own_hosts(
    tx: Transaction, hosts: Sequence[str] = (), *, after: int, limit: int
) -> list[tuple[int, CostRate]]:
    """Costs that operators recorded for all own hosts or for those with these ids, with their numbers."""
    marks, values = in_list(hosts) if hosts else ("", {})
    only = f" AND host_id IN ({marks})" if hosts else ""
    rows = tx.all(
        f"SELECT number, {_RATE.names} FROM host_cost WHERE instance_id = '' AND number > :after{only}"
        " ORDER BY number LIMIT :limit",
        after=after,
        limit=limit,
        **values,
    )
    return [(row[0], _RATE.value(row[1:])) for row in rows]


def rates_at_site(
    tx: Transaction, site: str, project_id: ProjectId, since_us: int
) -> dict[str, list[CostRate]]:
    """What was recorded of the rented hosts of a site that existed after a time, by host. Empty project: of all."""
    rows = tx.all(
        f"{_RATE.select} WHERE (:project = '' OR project_id = :project) AND host_id IN (SELECT h.id FROM host h"
        " WHERE h.site = :site AND h.kind = 'rented' AND (h.gone_at_us IS NULL OR h.gone_at_us >= :since))"
        " ORDER BY number",
        project=project_id,
        site=site,
        since=since_us,
    )
    found: dict[str, list[CostRate]] = {}
    for row in rows:
        rate = _RATE.value(row)
        found.setdefault(rate.host_id, []).append(rate)
    return found


def per_hour_at_site(tx: Transaction, site: str, project_id: ProjectId) -> int:
    """What the machines that are rented now, or are about to be, cost per hour together. Empty project: of all."""
    row = tx.one(
        "SELECT SUM(h.cost_micros_per_hour) FROM host h JOIN instance i ON i.host_id = h.id"
        " WHERE h.site = :site AND h.kind = 'rented' AND h.gone_at_us IS NULL"
        " AND (:project = '' OR i.project_id = :project)",
        site=site,
        project=project_id,
    )
    return int(row[0] or 0) if row else 0


# -- sizes -------------------------------------------------------------------------------------------------------------


def newest_sizes(tx: Transaction) -> dict[str, HostSize]:
    rows = tx.all(
        f"{_SIZE.select} WHERE from_us = (SELECT MAX(n.from_us) FROM host_size n WHERE n.host_id = host_size.host_id)"
    )
    return {row[0]: _SIZE.value(row) for row in rows}


def add_sizes(tx: Transaction, sizes: Iterable[HostSize]) -> None:
    tx.run_many(_SIZE.insert + " ON CONFLICT (host_id, from_us) DO NOTHING", [_SIZE.row(e) for e in sizes])


def sizes(tx: Transaction, host_id: str) -> tuple[HostSize, ...]:
    return _SIZE.all(tx, "WHERE host_id = :host ORDER BY from_us", host=host_id)


# -- uses --------------------------------------------------------------------------------------------------------------


def instances_behind(tx: Transaction, *, limit: int) -> list[str]:
    """Instances with metered changes that were not read here yet."""
    rows = tx.all(
        "SELECT m.instance_id FROM meter_instance m LEFT JOIN host_use_open u ON u.instance_id = m.instance_id"
        " WHERE u.sequence IS NULL OR u.sequence < m.sequence ORDER BY m.instance_id LIMIT :limit",
        limit=limit,
    )
    return [row[0] for row in rows]


def open_use(tx: Transaction, instance_id: str) -> OpenUse:
    return _OPEN.one(tx, "WHERE instance_id = :id", id=instance_id) or OpenUse(instance_id=instance_id)


def keep_open(tx: Transaction, uses: Iterable[OpenUse]) -> None:
    tx.run_many(_OPEN.upsert("instance_id"), [_OPEN.row(each) for each in uses])


def add_uses(tx: Transaction, uses: Sequence[HostUse]) -> None:
    """Add uses that ended. If one of them belongs to a booked day, that day is booked again."""
    tx.run_many(_USE.insert, [_USE.row(each) for each in uses])


def book_again(tx: Transaction, host_id: str, from_us: int) -> None:
    """Book the booked days of a host from a time on again."""
    tx.run(
        "UPDATE cost_host SET booked_until_us = :day_us WHERE host_id = :host AND booked_until_us > :day_us",
        host=host_id,
        day_us=from_us // DAY_US * DAY_US,
    )


def uses(tx: Transaction, host_id: str, from_us: int, until_us: int) -> tuple[HostUse, ...]:
    """Uses of a host that ended and overlap a time."""
    return _USE.all(
        tx,
        "WHERE host_id = :host AND until_us > :from_us AND from_us < :until_us ORDER BY from_us, instance_id",
        host=host_id,
        from_us=from_us,
        until_us=until_us,
    )


def open_uses(tx: Transaction, host_id: str, until_us: int) -> tuple[OpenUse, ...]:
    """Uses of a host that have not ended and began before a time."""
    return _OPEN.all(
        tx,
        "WHERE host_id = :host AND host_id <> '' AND from_us < :until_us ORDER BY from_us, instance_id",
        host=host_id,
        until_us=until_us,
    )


class HostRecords(msgspec.Struct, frozen=True):
    """What the cost of a host is computed from."""

    rates: list[CostRate]
    sizes: list[HostSize]
    uses: list[HostUse]
    open_uses: list[OpenUse]


def records_of_hosts_due(tx: Transaction, until_us: int) -> dict[str, HostRecords]:
    """The records of all `hosts_due`, with their uses since the last booked day: four statements instead of four for
    each host."""
    found: dict[str, HostRecords] = defaultdict(lambda: HostRecords([], [], [], []))
    due = "JOIN cost_host d ON d.host_id = t.host_id AND d.booked_until_us < :until"
    for row in tx.all(
        f"SELECT {_RATE.names_in('t')} FROM host_cost t {due} ORDER BY t.number", until=until_us
    ):
        rate = _RATE.value(row)
        found[rate.host_id].rates.append(rate)
    for row in tx.all(
        f"SELECT {_SIZE.names_in('t')} FROM host_size t {due} ORDER BY t.from_us", until=until_us
    ):
        size = _SIZE.value(row)
        found[size.host_id].sizes.append(size)
    since = "AND t.until_us > d.booked_until_us - 86400000000"
    for row in tx.all(
        f"SELECT {_USE.names_in('t')} FROM host_use t {due} {since} ORDER BY t.from_us, t.instance_id",
        until=until_us,
    ):
        use = _USE.value(row)
        found[use.host_id].uses.append(use)
    for row in tx.all(
        f"SELECT {_OPEN.names_in('t')} FROM host_use_open t {due} ORDER BY t.from_us, t.instance_id",
        until=until_us,
    ):
        now = _OPEN.value(row)
        found[now.host_id].open_uses.append(now)
    return found


# -- lines -------------------------------------------------------------------------------------------------------------


def hosts_due(tx: Transaction, until_us: int, *, limit: int) -> list[tuple[str, int]]:
    """Hosts with days before a time that are not booked, and the end of what is booked."""
    rows = tx.all(
        "SELECT host_id, booked_until_us FROM cost_host WHERE booked_until_us < :until"
        " ORDER BY booked_until_us, host_id LIMIT :limit",
        until=until_us,
        limit=limit,
    )
    return [(row[0], row[1]) for row in rows]


def set_booked(tx: Transaction, host_id: str, until_us: int) -> None:
    tx.run(
        "UPDATE cost_host SET booked_until_us = :until WHERE host_id = :host", until=until_us, host=host_id
    )


def lines_of_day(tx: Transaction, host_id: str, day: int) -> list[tuple[int, CostLine]]:
    """The lines of a day that were not reversed, with their numbers."""
    rows = tx.all(
        f"SELECT number, {_LINE.names} FROM cost c WHERE host_id = :host AND day = :day AND kind <> 'reversal'"
        " AND NOT EXISTS (SELECT 1 FROM cost r WHERE r.host_id = c.host_id AND r.day = c.day"
        " AND r.kind = 'reversal' AND r.reverses = c.number) ORDER BY number",
        host=host_id,
        day=day,
    )
    return [(row[0], _LINE.value(row[1:])) for row in rows]


def lines_to_book_again(tx: Transaction) -> list[CostLine]:
    """The lines, not reversed, of all days that must be booked again."""
    rows = tx.all(
        f"SELECT {_LINE.names_in('c')} FROM cost_host d JOIN cost c ON c.host_id = d.host_id"
        " AND c.day >= d.booked_until_us / 86400000000 WHERE c.kind <> 'reversal'"
        " AND NOT EXISTS (SELECT 1 FROM cost r WHERE r.host_id = c.host_id AND r.day = c.day"
        " AND r.kind = 'reversal' AND r.reverses = c.number)"
    )
    return [_LINE.value(row) for row in rows]


def last_day(tx: Transaction, host_id: str) -> int:
    """The last day of a host with lines. 0: none."""
    return number(tx, "SELECT COALESCE(MAX(day), 0) FROM cost WHERE host_id = :host", host=host_id)


def add_lines(tx: Transaction, lines: Sequence[CostLine], now_us: int) -> None:
    """Add numbered lines. The cursor must be locked."""
    first = _cursor(tx).lines + 1
    tx.run_many(
        _LINE.insert_with("number", "booked_at_us"),
        [(number, now_us, *_LINE.row(line)) for number, line in enumerate(lines, start=first)],
    )
    tx.run("UPDATE cost_cursor SET lines = lines + :count WHERE name = 'cost'", count=len(lines))


def spent(tx: Transaction, month: str) -> list[CostSum]:
    """The booked costs of a month."""
    rows = tx.all(
        "SELECT host_id, instance_id, project_id, currency, day, SUM(micros) FROM cost WHERE month = :month"
        " GROUP BY host_id, instance_id, project_id, currency, day",
        month=month,
    )
    return [CostSum(*row) for row in _with_sum(rows)]


def sold(tx: Transaction, month: str) -> list[RevenueSum]:
    """The booked charges of a month."""
    rows = tx.all(
        "SELECT subject, MAX(name), project_id, host, currency, from_us / 86400000000, SUM(micros) FROM charge"
        " WHERE month = :month AND currency <> ''"
        " GROUP BY subject, project_id, host, currency, from_us / 86400000000",
        month=month,
    )
    return [RevenueSum(*row) for row in _with_sum(rows)]


def _with_sum(rows: Iterable[Row]) -> Iterator[Row]:
    """PostgreSQL sums up to a NUMERIC."""
    return ((*row[:-1], int(row[-1])) for row in rows)
