"""Bids and prices of auctions as text for people."""

from typing import TYPE_CHECKING

from teraflock.base.money import amount_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.bid import BidPriceAnswer
    from teraflock.wire.instance import InstanceAnswer


def fields() -> "Fields[BidPriceAnswer]":
    return (
        Field("SINCE (UTC)", lambda each: time_text(each.at)),
        Field("REGION", lambda each: each.region, worth=2),
        Field("GPU", lambda each: each.gpu),
        Field("PRICE", lambda each: amount_text(each.price_micros_per_hour, each.currency, 4), right=True),
        Field(
            "FLOOR",
            lambda each: amount_text(each.floor_micros_per_hour, each.currency, 4),
            right=True,
            worth=3,
        ),
    )


def bid_text(instance: "InstanceAnswer") -> str:
    """`bids 1.50 per GPU and hour, pays 1.20`."""
    if instance.bid_micros_per_hour is None:
        return ""
    bid = amount_text(instance.bid_micros_per_hour, "", 4)
    runs = instance.state == "running" and instance.card_micros_per_hour is not None
    now = f", pays {amount_text(instance.card_micros_per_hour or 0, '', 4)}" if runs else ", does not run"
    return f"bids {bid} per GPU and hour{now}"
