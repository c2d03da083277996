"""Purchases and purchase limits as text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from teraflock.base.money import amount_text, decimals_for
from teraflock.words.money import years_text
from teraflock.words.table import Field, Fields

if TYPE_CHECKING:
    from teraflock.wire.purchase import LimitAnswer, PurchaseAnswer


def fields(purchases: "Sequence[PurchaseAnswer]") -> "Fields[PurchaseAnswer]":
    decimals = decimals_for(map(_month_micros, purchases))
    return (
        Field("ID", lambda each: each.id),
        Field("MODE", lambda each: years_text(each.years) if each.years else "monthly"),
        Field("INSTANCE", lambda each: each.instance or each.instance_id, worth=7),
        Field("PER MONTH", lambda each: amount_text(_month_micros(each), each.currency, decimals), right=True),
        Field("PAID UNTIL", lambda each: f"{each.paid_until:%Y-%m-%d %H:%M}"),
        Field("THEN", lambda each: "ended" if each.ended else "renewed" if each.renews else "ends", worth=6),
    )  # fmt: skip


def limit_fields(limits: "Sequence[LimitAnswer]") -> "Fields[LimitAnswer]":
    decimals = decimals_for(micros for each in limits for micros in (each.micros, each.spent_micros))
    return (
        Field("MEMBER", lambda each: each.member),
        Field("PER MONTH", lambda each: amount_text(each.micros, each.currency, decimals), right=True),
        Field("USED", lambda each: amount_text(each.spent_micros, each.currency, decimals), right=True),
    )


def _month_micros(purchase: "PurchaseAnswer") -> int:
    return max(term.month_micros for term in purchase.terms)
