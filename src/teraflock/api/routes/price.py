"""Prices and the price book."""

from collections.abc import Iterator
from typing import Final

from teraflock.api.call import Call
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.base.money import micros_per
from teraflock.bill.price.model import FOREVER_US, Period, PriceTable, Unit
from teraflock.bill.times import moment
from teraflock.fleet.model import HOSTS_MAX
from teraflock.tenant.model import By
from teraflock.tenant.rules import Permission
from teraflock.wire.price import BookRequest, PeriodsAnswer, PricesAnswer, UnitAnswer

routes = Routes("prices")
_AS_SNAPSHOTS: Final = frozenset({"image", "data"})
"""What costs as much as snapshots if the book sets no price of its own."""


@routes.get("/v1/prices", scope=Scope.KEY, errors=("not_found",))
def show_prices(call: Call) -> PricesAnswer:
    """Show the current prices."""
    return prices_answer(call.nouns.bills.prices.now())


@routes.put(
    "/v1/prices",
    scope=Scope.INSTALLATION,
    may=Permission.BILL_WRITE,
    errors=("bad_price_book", "bad_input", "unknown_name"),
)
def set_prices(call: Call, body: BookRequest) -> PeriodsAnswer:
    """Replace the price book. Past usage keeps its prices."""
    hosts = {host.name: host.id for host in call.nouns.fleet.hosts(limit=HOSTS_MAX)}
    taken = call.nouns.bills.prices.take(
        body.text, name=body.name, member=call.actor.member_id, hosts=hosts, by=By(actor=call.actor)
    )
    return PeriodsAnswer(items=tuple(map(prices_answer, taken)))


def prices_answer(period: Period) -> PricesAnswer:
    prices = period.prices
    tables = [("", prices.general)]
    tables += [(f"region {name}", table) for name, table in sorted(prices.regions.items())]
    tables += [(f"host {name}", table) for name, table in sorted(prices.hosts.items())]
    return filled(
        PricesAnswer,
        prices,
        version=period.version,
        starts_at=moment(period.from_us),
        ends_at=None if period.until_us == FOREVER_US else moment(period.until_us),
        monthly_percent_off=prices.monthly_bp / 100,
        spot_percent_off=prices.spot_bp / 100,
        reserved_percent_off={str(years): bp / 100 for years, bp in sorted(prices.reserved_bp.items())},
        upfront_percent_off=prices.upfront_bp / 100,
        long_term_percent_off={str(days): bp / 100 for days, bp in prices.long_term},
        refund_percent=prices.refund_bp / 100,
        tax_percent=prices.tax_bp / 100,
        items=tuple(item for place, table in tables for item in _items(place, table, prices.general)),
    )


def _items(place: str, table: PriceTable, general: PriceTable) -> Iterator[UnitAnswer]:
    for name, unit in sorted(table.gpu.items()):
        yield _unit_answer(name, place, unit)
    for name in ("vcpu", "ram", "disk", "snapshot", "image", "data", "address"):
        found: Unit | None = getattr(table, name)
        if found is None and name in _AS_SNAPSHOTS and getattr(general, name) is None:
            found = table.snapshot
        if found is not None:
            yield _unit_answer(name, place, found)
    if table.egress is not None:
        yield _unit_answer("egress", place, Unit(on_demand=table.egress), by_time=False)


def _unit_answer(what: str, place: str, unit: Unit, *, by_time: bool = True) -> UnitAnswer:
    return UnitAnswer(
        what=what,
        place=place,
        on_demand_micros_per_hour=micros_per(unit.on_demand, "hour") if by_time else None,
        on_demand_micros_per_month=unit.on_demand,
        monthly_micros=unit.monthly,
        spot_micros_per_hour=None if unit.spot is None else micros_per(unit.spot, "hour"),
    )
