"""From an offer of the catalog to what a launch needs to rent it, for `tera launch --offer` and the console."""

from typing import Any, Final

from teraflock.base.errors import Refused
from teraflock.base.money import decimal_text
from teraflock.wire.instance import AlternativeRequest
from teraflock.wire.offer import OfferShape
from teraflock.wire.shape import ShapeRequest

MODES: Final = ("on-demand", "spot", "bid")
BY_GPU: Final = frozenset({"vast", "runpod"})
"""Providers whose machines are found by GPU when they are launched: their offers change by the minute."""


def options_of(offer: OfferShape) -> tuple[ShapeRequest, dict[str, Any]]:
    """The shape and the options of `tera launch` that rent an offer."""
    if offer.mode not in MODES:
        raise Refused(
            f"An offer in mode `{offer.mode}` cannot be launched",
            hint=f"Only these can: {', '.join(MODES)}. Buy the others from the provider",
        )
    if offer.price_usd_per_hour is None:
        raise Refused("The price of this offer is unknown", hint="Choose an offer with a price")
    options: dict[str, Any] = {
        "provider": offer.provider,
        "mode": offer.mode,
        "max_price": decimal_text(round(offer.price_usd_per_hour * 10**6), 6),
    }
    if offer.provider in BY_GPU:
        return ShapeRequest(gpu=offer.gpu or offer.gpu_name, gpus=offer.gpu_count or 1), options
    if not offer.instance_type:
        raise Refused(
            f"This offer of {offer.provider} has no machine type", hint="Choose an offer that has one"
        )
    region = "" if "|" in offer.region else offer.region
    return ShapeRequest(), {**options, "type": offer.instance_type, "region": region}


def can_be_launched(offer: OfferShape) -> bool:
    try:
        options_of(offer)
    except Refused:
        return False
    return True


def alternative_of(offer: OfferShape, price_max: int | None) -> AlternativeRequest:
    """An offer as another machine to rent, at its price at most unless `price_max` is given."""
    shape, found = options_of(offer)
    return AlternativeRequest(
        provider=found["provider"],
        type=found.get("type", ""),
        shape=shape,
        region=found.get("region", ""),
        mode=found["mode"],
        max_price_micros_per_hour=price_max or round((offer.price_usd_per_hour or 0) * 10**6),
        offer=offer.id,
    )
