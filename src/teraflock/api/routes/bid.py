"""Prices of auctions for idle cards. `PATCH /v1/instances/{instance}` changes a bid."""

from teraflock.api.call import Call, cut
from teraflock.api.query import BidPageQuery
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.instance.bid.model import AuctionPrice
from teraflock.tenant.rules import Permission
from teraflock.wire.bid import BidPriceAnswer, BidPricePage

routes = Routes("bids")


@routes.get("/v1/bids", scope=Scope.PROJECT, may=Permission.INSTANCE_READ, errors=("unknown_name",))
def list_bid_prices(call: Call, query: BidPageQuery) -> BidPricePage:
    """List what cards cost in auctions, newest first. It is the same for every project and names no bidder."""
    found = call.nouns.instances.bids.prices(
        region=query.region, gpu=query.gpu, before=query.after, limit=query.limit + 1
    )
    rows, last = cut(found, query.limit)
    return BidPricePage(items=tuple(map(bid_price_answer, rows)), next=last.id if last else None)


def bid_price_answer(price: AuctionPrice) -> BidPriceAnswer:
    return filled(
        BidPriceAnswer,
        price,
        floor_micros_per_hour=price.floor_micros,
        price_micros_per_hour=price.price_micros,
    )
