"""Offers: machines to rent, with place and price."""

import msgspec

from teraflock.api.call import Call
from teraflock.api.query import HistoryQuery, OfferQuery
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.wire.offer import HistoryAnswer, HistoryPoint, OfferShape, shape_offer

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
def show_offer_history(call: Call, query: HistoryQuery) -> HistoryAnswer:
    """Show the price of a GPU-hour over time, for all current and past offers that match.

    Each point is a day on which prices were first seen. The filters are those of `tera offers history`.
    """
    found = call.services.planner.offers.history(query)
    points = (HistoryPoint(**msgspec.structs.asdict(each)) for each in found.points)
    return HistoryAnswer(currency=found.currency, points=tuple(points))
