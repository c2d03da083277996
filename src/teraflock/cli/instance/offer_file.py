"""`tera launch --offer ID`: find an offer of `tera offers --json`."""

import re
from typing import Final

from teraflock.app.local import Local
from teraflock.base.clock import SystemClock, today
from teraflock.base.errors import BadInput, NotFound
from teraflock.wire.offer import OfferShape, shape_offer

ID: Final = re.compile(r"[0-9a-f]{16}")


def find(id: str) -> OfferShape:
    """The offer in the local catalog."""
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


def text_of(offer: OfferShape) -> str:
    gpus = f"{offer.gpu_count or 1}× {offer.gpu or offer.gpu_name}"
    return f"{gpus} at {offer.provider}, up to {offer.price_usd_per_hour:.6g} USD per hour"
