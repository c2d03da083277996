"""Credits as text."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from teraflock.base.money import amount_text, decimals_for
from teraflock.words.table import Field, Fields

if TYPE_CHECKING:
    from teraflock.wire.credit import CreditAnswer


def fields(credits: "Sequence[CreditAnswer]") -> "Fields[CreditAnswer]":
    decimals = decimals_for(micros for each in credits for micros in (each.left_micros, each.micros))
    return (
        Field("LEFT", lambda each: amount_text(each.left_micros, each.currency, decimals), right=True),
        Field("OF", lambda each: amount_text(each.micros, each.currency, decimals), right=True),
        Field("REASON", lambda each: each.reason, flexible=True),
        Field("LAST DAY (UTC)", _last_day),
    )


def _last_day(credit: "CreditAnswer") -> str:
    if credit.is_expired:
        return "expired"
    return f"{credit.expires_at - timedelta(seconds=1):%Y-%m-%d}" if credit.expires_at else "never expires"
