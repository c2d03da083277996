"""An exchange rate as `tera rates --json` and `GET /v1/rates` have it."""

from datetime import date

import msgspec

from teraflock.base.exchange import Rate


class RateShape(msgspec.Struct, frozen=True, kw_only=True):
    day: date
    """From this day on, until the next rate of the currency."""
    currency: str
    micros_per_usd: int
    source: str


def shape_rate(rate: Rate) -> RateShape:
    return RateShape(
        day=rate.day, currency=rate.currency, micros_per_usd=rate.micros_per_usd, source=rate.source
    )
