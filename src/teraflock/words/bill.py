"""Costs and bills as text."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.base.money import amount_text, decimals_for
from teraflock.base.quantities import memory_text
from teraflock.words.money import hourly_text
from teraflock.words.shape import cards_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text, time_text

if TYPE_CHECKING:
    from teraflock.wire.bill import CostAnswer, LineAnswer


def line_fields(lines: "Sequence[LineAnswer]") -> "Fields[LineAnswer]":
    decimals = decimals_for(each.micros for each in lines)
    return (
        Field("FROM", lambda each: time_text(each.starts_at)),
        Field("UNTIL", lambda each: time_text(each.ends_at), worth=8),
        Field("NAME", lambda each: each.name or each.subject, flexible=True),
        Field("KIND", _kind_text, worth=7),
        Field("GPUS", cards_text, worth=8),
        Field("MODE", lambda each: each.mode if each.mode != "on-demand" else "", worth=4),
        Field("OFF", lambda each: f"{each.discount_percent:g}%" if each.discount_percent else "", right=True, worth=3),
        Field("AMOUNT", lambda each: amount_text(each.micros, each.currency, decimals), right=True),
    )  # fmt: skip


def _kind_text(line: "LineAnswer") -> str:
    return f"{memory_text(line.egress_bytes)} sent" if line.egress_bytes > 0 else line.kind


def price_text(cost: "CostAnswer | None") -> str:
    """The price of an instance per hour, or until when it is paid. Empty if it costs nothing."""
    if cost is None or not _costs(cost):
        return ""
    if cost.paid_until and not cost.micros_per_hour:
        return f"paid until {cost.paid_until:%Y-%m-%d}"
    return hourly_text(cost.micros_per_hour, cost.currency)


def cost_text(cost: "CostAnswer | None", decimals: int | None = None) -> str:
    """What an instance has cost so far, with the number of decimals of its column."""
    return amount_text(cost.micros, cost.currency, decimals) if cost is not None and _costs(cost) else ""


def _costs(cost: "CostAnswer") -> bool:
    return bool(cost.micros or cost.micros_per_hour or cost.paid_until)


def idle_text(cost: "CostAnswer", now: datetime) -> str:
    """A sentence about the idle GPUs of an instance and what they cost. Empty if none is idle."""
    if not cost.idle_gpus or not cost.idle_since:
        return ""
    cards = "A GPU" if cost.idle_gpus == 1 else f"{cost.idle_gpus} GPUs"
    price = f". It costs {hourly_text(cost.micros_per_hour, cost.currency)}" if cost.micros_per_hour else ""
    return f"{cards} of `{cost.name}` idle for {age_text(cost.idle_since, now)}{price}"
