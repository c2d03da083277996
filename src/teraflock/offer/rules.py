"""What makes an offer of a row, what is wrong with it, which offers fit a question, and their order.

Pure: no clock, no SQL, no files. `matches` and `sort_key` say in plain words what the store's SQL and the
index's arrays must answer; the tests hold both against them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from itertools import groupby
from typing import Final

from teraflock.base.exchange import Rates
from teraflock.base.money import MICROS, SECONDS, Period, divided
from teraflock.offer.model import SUSPECT_RAM, Line, Offer, PriceLimit, Query

# --- prices that cannot be true -----------------------------------------------------------------------------------

FLOOR_MICROS_PER_GPU_HOUR: Final = 15_000
"""0.015 USD. The cheapest honest GPU-hour seen (an old gaming card on a market) costs twice that; $0.01 is a
placeholder that some catalogs carry for cards they cannot price."""
FLOOR_MICROS_PER_TFLOPS_HOUR: Final = 500
"""0.0005 USD per FP32 TFLOPS: a third of the cheapest spot prices seen, so that a fast card has a higher floor."""

ROUNDING_TOLERANCE: Final = 1_0001, 1_0000
"""A spot price above on-demand by less than one part in ten thousand is a rounding of the same price."""


def absurd_price(usd_micros_per_hour: int, gpu_count: int, share: float, tflops: float | None) -> str:
    """Why a price cannot be that of so many GPUs, or nothing."""
    if usd_micros_per_hour <= 0:
        return "the price is zero"
    floor = max(FLOOR_MICROS_PER_GPU_HOUR * share, FLOOR_MICROS_PER_TFLOPS_HOUR * (tflops or 0.0))
    if gpu_count and usd_micros_per_hour < floor * gpu_count:
        each = usd_micros_per_hour / gpu_count / MICROS
        return f"{each:.4f} USD per GPU-hour is below any price such a card is let for"
    return ""


def spot_faults(spot_micros: int, on_demand_micros: int | None) -> tuple[str, tuple[str, ...]]:
    """What is wrong with a spot price beside the on-demand price of the same machine: a fault, and flags."""
    above, one = ROUNDING_TOLERANCE
    if not on_demand_micros or spot_micros < on_demand_micros:
        return "", ()
    if spot_micros * one > on_demand_micros * above:
        return "the spot price is above the on-demand price", ()
    return "", ("spot-not-cheaper",)


# --- which offers fit ----------------------------------------------------------------------------------------------


def matches(offer: Offer, query: Query, rates: Rates, on: date) -> bool:
    """Whether one offer fits the question. The plain meaning of every filter."""
    return (
        (offer.gpu in query.gpus if query.gpus else offer.kind in query.kinds)
        and (not query.providers or offer.provider in query.providers)
        and (not query.regions or any(region.casefold() in place_of(offer) for region in query.regions))
        and (not query.modes or offer.mode in query.modes)
        and (not query.sources or offer.source in query.sources)
        and _at_least(offer.gpu_count, query.count_min)
        and (query.count_max is None or (offer.gpu_count is not None and offer.gpu_count <= query.count_max))
        and _at_least(offer.gpu_memory_bytes, query.memory_bytes_min)
        and _at_least(offer.gpu_memory_total_bytes, query.memory_total_bytes_min)
        and _at_least(offer.vcpus, query.vcpus_min)
        and _at_least(usable_ram(offer), query.ram_bytes_min)
        and _within(offer, query.price_max, rates, on)
        and (query.as_of is None or _stood_on(offer, query.as_of))
        and (query.refused or offer.standing != "refused")
    )


def _at_least(value: float | None, least: float | None) -> bool:
    return least is None or (value is not None and value >= least)


def _within(offer: Offer, limit: PriceLimit | None, rates: Rates, on: date) -> bool:
    if limit is None:
        return True
    if offer.standing != "priced" or offer.price_micros_per_month is None:
        return False
    return offer.price_micros_per_month <= limit_per_month(limit, offer.currency, rates, on)


LARGEST_STORED: Final = (1 << 63) - 1
"""What a 64-bit column holds. A limit beyond it is as good as none, or as one that nothing meets."""


def limit_per_month(limit: PriceLimit, currency: str, rates: Rates, on: date) -> int:
    """The largest integer price per month in `currency` that is within the limit. Exact, so the edge is inclusive."""
    per_month = limit.micros * (SECONDS["month"] // SECONDS[limit.per])
    if currency != limit.currency:
        per_unit = rates.rate(limit.currency, on).micros_per_usd
        per_month = per_month * rates.rate(currency, on).micros_per_usd // per_unit
    return min(per_month, LARGEST_STORED)


def place_of(offer: Offer) -> str:
    """Where it stands, as regions are searched in."""
    return place_text(offer.region, offer.zone)


def place_text(region: str, zone: str) -> str:
    return f"{region} {zone}".strip().casefold()


def only_kinds(query: Query) -> bool:
    """Whether the question asks for nothing but cards or kinds, in some order."""
    plain = Query(kinds=query.kinds, gpus=query.gpus, sort=query.sort, refused=query.refused)
    return query == plain


def usable_ram(offer: Offer) -> int | None:
    return None if SUSPECT_RAM in offer.flags else offer.ram_bytes


def _stood_on(offer: Offer, on: date) -> bool:
    """Whether the price held on a day: begun by then, and not yet followed by another."""
    day = on.isoformat()
    return first_day(offer.since) <= day and (not offer.until or day < first_day(offer.until))


def first_day(text: str) -> str:
    """`"2019"` → `"2019-01-01"`; nothing known → the empty text, which comes before every day."""
    return text + "-01-01"[len(text) - 4 :] if 4 <= len(text) < 10 else text


# --- their order ---------------------------------------------------------------------------------------------------

SortKey = tuple[int, float, str, str, str, str, int]


def weights(rates: Rates, on: date) -> Mapping[str, int]:
    """For each currency a factor by which its amounts compare exactly with those of any other."""
    micros_per_usd = {currency: rates.rate(currency, on).micros_per_usd for currency in rates.currencies()}
    product = 1
    for micros in set(micros_per_usd.values()):
        product *= micros
    return {currency: product // micros for currency, micros in micros_per_usd.items()}


def sort_key(query: Query, weight: Mapping[str, int]) -> Callable[[Offer], SortKey]:
    """Priced first, cheapest first by the asked measure; then unknown prices; then refused ones. Total."""
    unit = UNITS.get(query.sort)

    def key(offer: Offer) -> SortKey:
        value: float = 0
        rank = _RANK[offer.standing]
        price = offer.price_micros_per_month
        if offer.standing == "priced" and price is not None:
            if unit is None:
                value = price * weight[offer.currency]
            elif units := unit(offer):
                value = price / units * weight[offer.currency]
            else:
                rank = UNMEASURED_RANK
        return (rank, value, offer.provider, offer.instance_type, offer.region, offer.zone, offer.id)

    return key


_RANK: Final = {"priced": 0, "unknown": 2, "refused": 3}
UNMEASURED_RANK: Final = 1
"""Priced, but not in the asked measure (no GPU count, no memory): behind those that are, before the unpriced."""


def _gpus(offer: Offer) -> float | None:
    return offer.gpu_count


def _tflops(offer: Offer) -> float | None:
    return None if offer.gpu_tflops is None or offer.gpu_count is None else offer.gpu_tflops * offer.gpu_count


def _gigabytes(offer: Offer) -> float | None:
    return offer.gpu_memory_total_bytes


UNITS: Final[dict[str, Callable[[Offer], float | None]]] = {
    "price-per-gpu": _gpus,
    "price-per-tflops": _tflops,
    "price-per-gb": _gigabytes,
}
"""What a price is divided by under the sorts other than `price`; nothing or zero where the offer does not tell."""


def price_in(
    offer: Offer, currency: str, rates: Rates, on: date, *, per: Period = "hour", each: bool = False
) -> int | None:
    """The offer's price in a currency, for one period: of the machine, or of `each` of its GPUs.

    Every price that is shown comes from here. None where the price, or the number of GPUs, is not known.
    """
    monthly, parts = offer.price_micros_per_month, offer.gpu_count if each else 1
    if monthly is None or not parts:
        return None
    return in_currency(monthly, offer.currency, currency, rates, on, per=per, parts=parts)


def in_currency(
    micros_per_month: int,
    currency: str,
    to: str,
    rates: Rates,
    on: date,
    *,
    per: Period = "month",
    parts: int = 1,
) -> int:
    """A monthly price in another currency and for another period, in equal parts. Rounded once."""
    numerator, denominator = micros_per_month * SECONDS[per], SECONDS["month"] * parts
    if currency != to:
        numerator *= rates.rate(to, on).micros_per_usd
        denominator *= rates.rate(currency, on).micros_per_usd
    return divided(numerator, denominator)


def folded(offers: Iterable[Offer]) -> Iterator[Line]:
    """Neighbours that differ only in their place, as one line. Lazy: one line is read beyond the one handed out."""
    for _, group in groupby(offers, key=_all_but_place):
        alike = list(group)
        places = dict.fromkeys(place for offer in alike for place in (offer.region or offer.zone).split("|"))
        yield Line(alike[0], tuple(places), len(alike))


def _all_but_place(offer: Offer) -> tuple[object, ...]:
    return (
        offer.provider, offer.instance_type, offer.gpu or offer.gpu_name, offer.gpu_count, offer.gpu_share, offer.vcpus,
        offer.ram_bytes, offer.mode, offer.term_months, offer.currency, offer.price_micros_per_month, offer.standing,
        offer.as_of, offer.source, offer.flags,
    )  # fmt: skip
