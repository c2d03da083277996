"""Quotes on the wire."""

from msgspec.structs import asdict

from teraflock.base.filling import filled
from teraflock.base.size import Size
from teraflock.bill.quote import Quote
from teraflock.wire.quote import QuoteAnswer


def quote_answer(quote: Quote, shape: Size) -> QuoteAnswer:
    return filled(
        QuoteAnswer,
        quote,
        **asdict(shape),
        micros_until=quote.micros_until_deadline,
        reserved_micros={str(years): micros for years, micros in quote.reserved_micros.items()},
    )
