"""Quotes: the price of an instance before it is launched."""

from msgspec.structs import asdict

from teraflock.api.call import Call
from teraflock.api.convert.shape import wish_from
from teraflock.api.query import InProject
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.base.errors import BadInput
from teraflock.base.filling import filled
from teraflock.base.size import Size
from teraflock.bill.price.model import PricePlace
from teraflock.bill.quote import Quote
from teraflock.instance.orders import Order, shape_of
from teraflock.meter.model import Holding
from teraflock.tenant.rules import Permission
from teraflock.wire.quote import QuoteAnswer, QuoteRequest

routes = Routes("quotes")


@routes.post(
    "/v1/quote", scope=Scope.PROJECT, may=Permission.USAGE_READ, work=RouteWork.READ,
    errors=("refused", "unknown_name", "bad_input", "engine_down"),
)  # fmt: skip
def show_quote(call: Call, query: InProject, body: QuoteRequest) -> QuoteAnswer:
    """Show the price of a launch per hour, per month, and until a deadline."""
    if body.until is not None and body.until.tzinfo is None:
        raise BadInput("The deadline has no time zone", hint="Write it as `2026-12-01T18:00:00Z`")
    shape, places = _to_rent(call, body) if body.type or body.provider else _on_own_hosts(call, body)
    held = Holding(size=shape, mode="spot" if body.mode == "bid" else body.mode)  # a bid pays at least this
    found = call.nouns.bills.quote(
        call.project.id, held, places=places, instances=body.instances, until=body.until
    )
    return quote_answer(found, shape)


def _on_own_hosts(call: Call, body: QuoteRequest) -> tuple[Size, list[PricePlace]]:
    fleet = call.nouns.fleet
    shape = shape_of(wish_from(body.shape), fleet.kinds())
    places = fleet.places(shape, apart=call.nouns.bills.hosts_with_prices(), host=body.host, site=body.site)
    return shape, [PricePlace(*each) for each in places]


def _to_rent(call: Call, body: QuoteRequest) -> tuple[Size, list[PricePlace]]:
    order = Order(
        site=body.site,
        provider=body.provider,
        type=body.type,
        shape=wish_from(body.shape),
        region=body.region,
        mode=body.mode,
    )
    shape, rental = call.nouns.instances.to_rent(call.project, order)
    return shape, [PricePlace("", region) for region in rental.regions]


def quote_answer(quote: Quote, shape: Size) -> QuoteAnswer:
    return filled(
        QuoteAnswer,
        quote,
        **asdict(shape),
        micros_until=quote.micros_until_deadline,
        reserved_micros={str(years): micros for years, micros in quote.reserved_micros.items()},
    )
