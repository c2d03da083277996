"""Prices as text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from teraflock.base.money import amount_text
from teraflock.words.money import hourly_text, years_text
from teraflock.words.table import Field, Fields

if TYPE_CHECKING:
    from teraflock.wire.price import PricesAnswer, UnitAnswer

_NAMES: Final = {
    "vcpu": "vCPU", "ram": "GB of memory", "disk": "GB of disk", "snapshot": "GB of snapshots",
    "image": "GB of images", "data": "GB of datasets", "address": "public address", "egress": "GB sent out (once)",
}  # fmt: skip

SMALL_MICROS: Final = 10_000  # four decimals of a smaller price would be wrong by more than 0.5 %


def fields(currency: str) -> "Fields[UnitAnswer]":
    def hourly(micros: int | None) -> str:
        if micros is None:
            return ""
        return hourly_text(micros, currency, decimals=6 if 0 < micros < SMALL_MICROS else 4)

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


def conditions(prices: "PricesAnswer") -> list[str]:
    """The minimum, the discounts, the refund and the tax of a price book."""
    facts = [f"version {prices.version}, since {prices.starts_at:%Y-%m-%d %H:%M} UTC"]
    if prices.minimum_seconds:
        facts.append(f"each run is charged for at least {prices.minimum_seconds} s")
    if prices.spot_percent_off:
        facts.append(f"{prices.spot_percent_off:g}% off GPUs, vCPUs and memory of spot instances")
    facts += [f"{percent:g}% off after {days} days" for days, percent in prices.long_term_percent_off.items()]
    facts += _purchase_conditions(prices)
    if prices.tax_percent:
        facts.append(f"{prices.tax_name} {prices.tax_percent:g}% is added")
    return facts


def _purchase_conditions(prices: "PricesAnswer") -> Iterator[str]:
    if prices.monthly_percent_off:
        yield f"{prices.monthly_percent_off:g}% off a month paid ahead"
    for years, percent in prices.reserved_percent_off.items():
        yield f"a further {percent:g}% off if reserved for {years_text(int(years))}"
    if prices.upfront_percent_off:
        yield f"a further {prices.upfront_percent_off:g}% off if paid upfront"
    if prices.refund_percent:
        yield f"{prices.refund_percent:g}% of the rest is refunded if a month ends early"
