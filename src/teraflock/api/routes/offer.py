"""Offers: machines to rent, with place and price."""

from teraflock.api.call import Call
from teraflock.api.query import OfferQuery
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.wire.offer import OfferShape, shape_offer

routes = Routes("offers")


@routes.get("/v1/offers", scope=Scope.KEY, work=RouteWork.LOOKUP, errors=("bad_input", "unknown_name"))
def list_offers(call: Call, query: OfferQuery) -> list[OfferShape]:
    """List offers, cheapest first.

    The filters are those of `tera offers`. The response is that of `tera offers --json`.
    """
    found = call.services.planner.offers.answer(query, limit=query.limit, refused=query.refused)
    return [
        shape_offer(each, currency=found.currency, per=found.per, rates=found.rates, on=found.on)
        for each in found.offers
    ]
