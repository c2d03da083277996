"""Prices of auctions as answers."""

from teraflock.instance.bid.model import AuctionPrice
from teraflock.wire.bid import BidPriceAnswer


def bid_price_answer(price: AuctionPrice) -> BidPriceAnswer:
    return BidPriceAnswer(
        id=price.id,
        at=price.at,
        region=price.region,
        gpu=price.gpu,
        currency=price.currency,
        floor_micros_per_hour=price.floor_micros,
        price_micros_per_hour=price.price_micros,
    )
