"""Prices of auctions as answers."""

from teraflock.base.filling import filled
from teraflock.instance.bid.model import AuctionPrice
from teraflock.wire.bid import BidPriceAnswer


def bid_price_answer(price: AuctionPrice) -> BidPriceAnswer:
    return filled(
        BidPriceAnswer,
        price,
        floor_micros_per_hour=price.floor_micros,
        price_micros_per_hour=price.price_micros,
    )
