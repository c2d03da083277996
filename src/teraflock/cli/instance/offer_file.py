"""`tera launch --offer ID`: turn an offer of `tera offers --json` into the options of a launch."""

import re
from typing import Any, Final

from teraflock.base.clock import SystemClock, today
from teraflock.base.errors import BadInput, NotFound, Refused
from teraflock.base.money import decimal_text
from teraflock.wire.offer import OfferShape, shape_offer
from teraflock.wire.shape import ShapeRequest

ID: Final = re.compile(r"[0-9a-f]{16}")
MODES: Final = ("on-demand", "spot", "bid")
BY_GPU: Final = frozenset({"vast", "runpod"})
"""Providers whose machines are found by GPU when they are launched: their offers change by the minute."""


def find(id: str) -> OfferShape:
    """The offer in the local catalog."""
    from teraflock.app.local import Local

    if not ID.fullmatch(id):
        raise BadInput(f"`{id[:40]}` is not the id of an offer", hint="`tera offers --json` shows ids")
    number = int(id, 16)
    with Local() as local:
        found = local.offers().offer(number - (1 << 64) if number >> 63 else number)
        if found is None:
            raise NotFound(
                f"There is no offer `{id}`", hint="Its price may have changed: `tera offers --json` shows ids"
            )
        return shape_offer(found, currency="USD", per="hour", rates=local.rates, on=today(SystemClock()))


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
            f"This offer of {offer.provider} names no machine type", hint="Choose an offer that has one"
        )
    region = "" if "|" in offer.region else offer.region
    return ShapeRequest(), {**options, "type": offer.instance_type, "region": region}


def text_of(offer: OfferShape) -> str:
    gpus = f"{offer.gpu_count or 1}× {offer.gpu or offer.gpu_name}"
    return f"{gpus} at {offer.provider}, up to {offer.price_usd_per_hour:.6g} USD per hour"
