"""Revenue, cost and margin of a month. For operators.

Revenue is what was charged, before credits and tax. Amounts are converted day by day, at the rates of the price book of
that day. An amount without a rate stays in its own currency, in a separate row.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Literal

import msgspec

from teraflock.base.clock import DAY_US
from teraflock.base.money import divided
from teraflock.bill import costs
from teraflock.bill import store as bill_store
from teraflock.bill.charge import store as charge_store
from teraflock.bill.desk import Desk
from teraflock.bill.margin import store
from teraflock.bill.margin.model import CostLine
from teraflock.bill.margin.service import lines_to_come
from teraflock.bill.margin.store import CostSum, RevenueSum
from teraflock.bill.price.model import PriceBook
from teraflock.bill.purchase import store as purchase_store
from teraflock.bill.traffic import traffic_due
from teraflock.fleet import store as fleet
from teraflock.fleet.model import HostId
from teraflock.instance.across import store as across
from teraflock.meter import store as meter_store
from teraflock.meter.ahead import ahead
from teraflock.storage.database import Transaction
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.organisation import store as organisation_store
from teraflock.tenant.project import store as project_store

MarginBy = Literal["organisation", "project", "instance", "host"]
ROWS_MAX = 1_000  # of a report; further rows are summed up by currency


class MarginRow(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """Empty: idle hosts, or all rows beyond the first thousand."""
    name: str
    currency: str
    revenue_micros: int = 0
    cost_micros: int = 0
    idle_micros: int = 0
    """The part of the cost when the host was idle."""

    @property
    def margin_micros(self) -> int:
        return self.revenue_micros - self.cost_micros


class Margin(msgspec.Struct, frozen=True, kw_only=True):
    month: str
    by: MarginBy
    rows: tuple[MarginRow, ...]
    totals: tuple[MarginRow, ...]
    """One for each currency."""
    hosts_without_cost: int
    """Hosts with revenue and an unknown cost: their margin is too high."""
    amounts: int
    """How many amounts were added up."""


class _Amount(msgspec.Struct, frozen=True, gc=False):
    """Revenue or cost of one day, in the currency of the report if there is a rate."""

    project_id: ProjectId
    instance_id: str
    host_id: str
    currency: str
    revenue: int
    cost: int
    idle: int


class _Sum(msgspec.Struct):
    revenue: int = 0
    cost: int = 0
    idle: int = 0

    def add(self, amount: _Amount) -> None:
        self.revenue += amount.revenue
        self.cost += amount.cost
        self.idle += amount.idle


def margin(tx: Transaction, month: str, by: MarginBy, now_us: int) -> Margin:
    names: dict[str, str] = {}
    keyed: dict[tuple[str, str], _Sum] = defaultdict(_Sum)
    totals: dict[tuple[str, str], _Sum] = defaultdict(_Sum)
    key_of = _keys(tx, by)
    earning: set[str] = set()
    costing: set[str] = set()
    count = 0
    for amount in chain(_revenue(tx, month, now_us, names), _costs(tx, month, now_us)):
        count += 1
        keyed[key_of(amount), amount.currency].add(amount)
        totals["", amount.currency].add(amount)
        if amount.revenue:
            earning.add(amount.host_id)
        if amount.cost:
            costing.add(amount.host_id)
    if by == "host":
        names = {str(id): name for id, name in fleet.names(tx, [HostId(id) for id, _ in keyed if id]).items()}
    rows = [_row(key, _name(tx, by, key[0], names), each) for key, each in keyed.items()]
    return Margin(
        month=month,
        by=by,
        rows=_bounded(rows),
        totals=tuple(_row(key, "total", each) for key, each in sorted(totals.items())),
        hosts_without_cost=len(earning - costing - {""}),
        amounts=count,
    )


def _revenue(tx: Transaction, month: str, now_us: int, names: dict[str, str]) -> Iterator[_Amount]:
    """Also adds the names of instances to `names`."""
    desk = Desk(tx)
    sold = store.sold(tx, month)
    for project_id in sorted({each.project_id for each in sold} | meter_store.projects_with_open_meters(tx)):
        sold += _unbooked(tx, desk, project_id, month, now_us)
    bought_for = {term.purchase_id: term.instance_id for term in purchase_store.terms_in_all_projects(tx)}
    for each in sold:
        instance_id = bought_for.get(each.subject, each.subject)
        names[instance_id] = each.name
        currency, micros = _exchanged(desk.book, each.currency, each.micros, each.day)
        yield _Amount(each.project_id, instance_id, each.host_id, currency, micros, 0, 0)


def _unbooked(
    tx: Transaction, desk: Desk, project_id: ProjectId, month: str, now_us: int
) -> Iterator[RevenueSum]:
    """The charges of a project in a month that would be booked if everything stopped now, without minimum charges."""
    metered = ahead(tx, project_id, bill_store.cursor(tx).intervals)
    for each in (*costs.closed_to_come(desk, metered), *traffic_due(tx, desk, project_id=project_id)):
        if each.slice.currency and charge_store.month_of(each.slice.from_us) == month:
            yield RevenueSum(
                each.subject.id, each.subject.held.name, project_id, each.subject.held.host,
                each.slice.currency, each.slice.from_us // DAY_US, each.micros,
            )  # fmt: skip
    currency = desk.currency(project_id)
    for interval, booked_us in costs.open_intervals(tx, project_id, metered.open):
        held = interval.held
        for day, micros in costs.days_to_come(desk, interval, booked_us, now_us):
            if charge_store.month_of(day * DAY_US) == month:
                yield RevenueSum(
                    interval.instance_id, held.name, project_id, held.host, currency, day, micros
                )


def _costs(tx: Transaction, month: str, now_us: int) -> Iterator[_Amount]:
    book = Desk(tx).book
    spent = store.spent(tx, month)
    spent += [_spent(line) for line in lines_to_come(tx, now_us) if line.month == month]
    for each in spent:
        currency, micros = _exchanged(book, each.currency, each.micros, each.day)
        idle = 0 if each.instance_id else micros
        yield _Amount(each.project_id, each.instance_id, each.host_id, currency, 0, micros, idle)


def _spent(line: CostLine) -> CostSum:
    return CostSum(line.host_id, line.instance_id, line.project_id, line.currency, line.day, line.micros)


def _exchanged(book: PriceBook, currency: str, micros: int, day: int) -> tuple[str, int]:
    """An amount of a day in the currency of the price book, or unchanged if the book of that day has no rate."""
    period = book.at((day + 1) * DAY_US - 1)  # a book that was set during the day applies to it
    rates = period.prices.rates if period else {}
    if currency == book.currency or not (rates.get(currency) and rates.get(book.currency)):
        return currency, micros
    return book.currency, divided(micros * rates[book.currency], rates[currency])


def _keys(tx: Transaction, by: MarginBy) -> Callable[[_Amount], str]:
    """What the rows of the report are."""
    if by == "organisation":
        organisation_of = cache(lambda project_id: _organisation(tx, project_id))
        return lambda amount: organisation_of(amount.project_id)
    return attrgetter({"project": "project_id", "instance": "instance_id", "host": "host_id"}[by])


def _organisation(tx: Transaction, project_id: ProjectId) -> str:
    found = project_store.project_of_any_organisation(tx, project_id)
    found = found or project_store.removed_project(tx, project_id)
    return found.organisation_id if found else ""


def _name(tx: Transaction, by: MarginBy, id: str, names: dict[str, str]) -> str:
    if not id:
        return "idle hosts" if by != "host" else "no host"
    if by == "instance":
        return names.get(id) or across.name_in_all_projects(tx, id) or id
    if by == "host":
        return names.get(id, id)
    if by == "organisation":
        organisation = organisation_store.organisation(tx, OrganisationId(id))
        return organisation.name if organisation else id
    project = project_store.project_of_any_organisation(tx, id) or project_store.removed_project(tx, id)
    if not project:
        return id
    organisation = organisation_store.organisation(tx, project.organisation_id)
    return f"{organisation.name}:{project.name}" if organisation else project.name


def _row(key: tuple[str, str], name: str, total: _Sum) -> MarginRow:
    return MarginRow(
        id=key[0],
        name=name,
        currency=key[1],
        revenue_micros=total.revenue,
        cost_micros=total.cost,
        idle_micros=total.idle,
    )


def _bounded(rows: list[MarginRow]) -> tuple[MarginRow, ...]:
    """The largest first. Rows beyond a limit become one row for each currency."""
    rows.sort(key=lambda row: (-(row.revenue_micros + row.cost_micros), row.name, row.id, row.currency))
    others: dict[str, list[MarginRow]] = {}
    for row in rows[ROWS_MAX:]:
        others.setdefault(row.currency, []).append(row)
    summed = [
        MarginRow(
            id="",
            name=f"{len(each):,} others",
            currency=currency,
            revenue_micros=sum(row.revenue_micros for row in each),
            cost_micros=sum(row.cost_micros for row in each),
            idle_micros=sum(row.idle_micros for row in each),
        )
        for currency, each in sorted(others.items())
    ]
    return (*rows[:ROWS_MAX], *summed)
