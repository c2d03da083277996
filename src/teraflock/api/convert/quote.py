"""Quotes on the wire."""

from msgspec.structs import asdict

from teraflock.base.size import Size
from teraflock.bill.quote import Quote
from teraflock.wire.quote import QuoteAnswer


def quote_answer(quote: Quote, shape: Size) -> QuoteAnswer:
    return QuoteAnswer(
        currency=quote.currency,
        instances=quote.instances,
        mode=quote.mode,
        **asdict(shape),
        micros_per_hour=quote.micros_per_hour,
        micros_per_month=quote.micros_per_month,
        micros_stopped_per_month=quote.micros_stopped_per_month,
        egress_micros_per_gb=quote.egress_micros_per_gb,
        snapshot_micros_per_gb=quote.snapshot_micros_per_gb,
        region=quote.region,
        micros_until=quote.micros_until_deadline,
        minimum_micros=quote.minimum_micros,
        monthly_micros=quote.monthly_micros,
        reserved_micros={str(years): micros for years, micros in quote.reserved_micros.items()},
        version=quote.version,
        is_priced=quote.is_priced,
    )
