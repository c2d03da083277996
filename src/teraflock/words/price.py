"""Prices as text."""

from typing import TYPE_CHECKING, Final

from teraflock.base.money import amount_text
from teraflock.words.money import hourly_text
from teraflock.words.table import Field, Fields

if TYPE_CHECKING:
    from teraflock.wire.price import UnitAnswer

_NAMES: Final = {
    "vcpu": "vCPU", "ram": "GB of memory", "disk": "GB of disk", "snapshot": "GB of snapshots",
    "egress": "GB sent out (once)",
}  # fmt: skip


def fields(currency: str) -> "Fields[UnitAnswer]":
    def hourly(micros: int | None) -> str:
        return "" if micros is None else hourly_text(micros, currency)

    def amount(micros: int | None) -> str:
        return "" if micros is None else amount_text(micros, currency)

    return (
        Field("WHAT", lambda each: _NAMES.get(each.what, each.what)),
        Field("PER HOUR", lambda each: hourly(each.on_demand_micros_per_hour), right=True),
        Field("PER MONTH", lambda each: amount(each.on_demand_micros_per_month), right=True),
        Field("MONTH PAID AHEAD", lambda each: amount(each.monthly_micros), right=True, worth=6),
        Field("SPOT", lambda each: hourly(each.spot_micros_per_hour), right=True, worth=5),
        Field("WHERE", lambda each: each.place, worth=7),
    )
