"""Prices and the price book."""

from teraflock.api.call import Call
from teraflock.api.convert.price import prices_answer
from teraflock.api.route import Routes, Scope
from teraflock.tenant.model import By
from teraflock.tenant.rules import Permission
from teraflock.wire.price import BookRequest, PeriodsAnswer, PricesAnswer

routes = Routes("prices")
HOSTS_MAX = 10_000


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
