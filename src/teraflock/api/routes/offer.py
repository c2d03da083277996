"""Offers: machines to rent, with place and price."""

from teraflock.api.call import Call
from teraflock.api.query import HistoryQuery, OfferQuery
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.wire.offer import HistoryPoint, OfferShape, history_points, shape_offer

routes = Routes("offers", scope=Scope.KEY)


@routes.get("/v1/offers", work=RouteWork.LOOKUP, errors=("bad_input", "unknown_name"))
def list_offers(call: Call, query: OfferQuery) -> list[OfferShape]:
    """List offers, cheapest first.

    The filters are those of `tera offers`. The response is that of `tera offers --json`.
    """
    found = call.services.planner.offers.answer(query, limit=query.limit, refused=query.refused)
    return [
        shape_offer(each, currency=found.currency, per=found.per, rates=found.rates, on=found.on)
        for each in found.offers
    ]


@routes.get("/v1/offers/history", work=RouteWork.LOOKUP, errors=("bad_input", "unknown_name"))
def show_offer_history(call: Call, query: HistoryQuery) -> list[HistoryPoint]:
    """Show the price of a GPU-hour over time, for all current and past offers that match.

    Each point is a day on which prices were first seen, oldest first. The filters are those of `tera offers history`.
    The response is that of `tera offers history --json`.
    """
    found = call.services.planner.offers.history(query)
    return history_points(found.points, found.currency)
