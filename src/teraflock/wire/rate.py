"""An exchange rate as JSON, for `tera rates --json` and `GET /v1/rates`."""

from datetime import date

import msgspec

from teraflock.base.exchange import Rate
from teraflock.base.filling import filled


class RateShape(msgspec.Struct, frozen=True, kw_only=True):
    day: date
    """The first day of this rate. It is valid until the next rate of the currency."""
    currency: str
    micros_per_usd: int
    source: str


def shape_rate(rate: Rate) -> RateShape:
    return filled(RateShape, rate)
