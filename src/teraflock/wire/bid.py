"""Prices of auctions for idle cards on the wire."""

from datetime import datetime

import msgspec


class BidPriceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a card costs in an auction, from this time until the next price of the same region and GPU model."""

    id: str
    at: datetime
    region: str
    gpu: str
    currency: str
    floor_micros_per_hour: int
    """The least that a bid must offer for each card: the spot price."""
    price_micros_per_hour: int
    """What the winner pays for each card: the highest losing bid, at least the floor."""


class BidPricePage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[BidPriceAnswer, ...]
    next: str | None
