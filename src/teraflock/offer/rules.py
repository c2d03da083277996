"""Rules of offers: implausible prices, matching a query, and the order of results.

Pure. `matches` and `sort_key` are the reference for the SQL of the store and the arrays of the index; tests compare
both with them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import groupby
from math import lcm
from typing import Final

from teraflock.base.exchange import Rates
from teraflock.base.money import HOURS_PER_MONTH, MICROS, SECONDS, Period, divided
from teraflock.catalog.cards import all_cards
from teraflock.catalog.figures import FIGURES
from teraflock.catalog.places import located
from teraflock.offer.model import SUSPECT_RAM, GpuPart, Offer, OfferLine, PriceLimit, Query

# --- implausible prices --------------------------------------------------------------------------------------------

FLOOR_MICROS_PER_GPU_HOUR: Final = 15_000
"""0.015 USD. The cheapest real GPU-hour seen (an old gaming card on a market) costs twice that. Some catalogs use
$0.01 as a placeholder."""
FLOOR_MICROS_PER_TFLOPS_HOUR: Final = 500
"""0.0005 USD per FP32 TFLOPS: a third of the cheapest spot prices seen. Gives fast cards a higher minimum."""

ROUNDING_TOLERANCE: Final = 1_0001, 1_0000
"""A spot price above on-demand by less than this fraction is a rounding error."""
SAME_SHARE: Final = 0.001
"""Shares of cards closer than this are equal: catalogs round a seventh."""
_RANK: Final = {"priced": 0, "unknown": 2, "refused": 3}
UNMEASURED_RANK: Final = 1
"""Rank of priced offers without the requested measure (no GPU count or memory): after those with it, before the
unpriced ones."""


def implausible_price(usd_micros_per_hour: int, gpu_count: int, share: float, tflops: float | None) -> str:
    """Return why a price is implausible for this number of GPUs. Empty if it is plausible."""
    if usd_micros_per_hour <= 0:
        return "the price is zero"
    floor = max(FLOOR_MICROS_PER_GPU_HOUR * share, FLOOR_MICROS_PER_TFLOPS_HOUR * (tflops or 0.0))
    if gpu_count and usd_micros_per_hour < floor * gpu_count:
        each = usd_micros_per_hour / gpu_count / MICROS
        return f"{each:.4f} USD per GPU-hour is implausibly low"
    return ""


def spot_faults(spot_micros: int, on_demand_micros: int | None) -> tuple[str, tuple[str, ...]]:
    """Compare a spot price with the on-demand price of the same machine. Return a fault and flags."""
    above, one = ROUNDING_TOLERANCE
    if not on_demand_micros or spot_micros < on_demand_micros:
        return "", ()
    if spot_micros * one > on_demand_micros * above:
        return "the spot price is above the on-demand price", ()
    return "", ("spot-not-cheaper",)


# --- matching ------------------------------------------------------------------------------------------------------


def matches(offer: Offer, query: Query, rates: Rates, on: date) -> bool:
    """Return whether an offer matches the query."""
    return (
        (offer.gpu in query.gpus if query.gpus else offer.kind in query.kinds)
        and (not query.providers or offer.provider in query.providers)
        and (not query.places or _is_located(offer, query))
        and (not query.modes or offer.mode in query.modes)
        and (not query.sources or offer.source in query.sources)
        and _at_least(offer.gpu_count, query.count_min)
        and (query.count_max is None or (offer.gpu_count is not None and offer.gpu_count <= query.count_max))
        and _at_least(offer.gpu_memory_bytes, query.memory_bytes_min)
        and _at_least(offer.gpu_memory_total_bytes, query.memory_total_bytes_min)
        and _at_least(offer.vcpus, query.vcpus_min)
        and _at_least(usable_ram(offer), query.ram_bytes_min)
        and _within(offer, query.price_max, rates, on)
        and (query.as_of is None or _was_current(offer, query.as_of))
        and (not query.newer_than or offer.as_of >= query.newer_than)
        and (query.slices or offer.gpu_share >= 1)
        and (not query.parts or is_part(offer.gpu_share, offer.gpu_memory_bytes, query.parts))
        and (shows_outdated(query) or not offer.outdated)
        and (query.refused or offer.standing != "refused")
    )


def is_part(share: float, memory_bytes: int | None, parts: Sequence[GpuPart]) -> bool:
    """Return whether an offer's part of a card is one of `parts`."""
    for part in parts:
        least, most = part.memory_about
        if abs(share - part.share) < SAME_SHARE and least <= (memory_bytes or 0) <= most:
            return True
    return False


def _is_located(offer: Offer, query: Query) -> bool:
    return located(offer.provider, offer.region, offer.zone, query.places) == "in"


def shows_outdated(query: Query) -> bool:
    """Past prices are shown as they were, so a search in the past includes outdated ones. So does a named source."""
    return query.outdated or query.as_of is not None or bool(query.sources)


def _at_least(value: float | None, least: float | None) -> bool:
    return least is None or (value is not None and value >= least)


def _within(offer: Offer, limit: PriceLimit | None, rates: Rates, on: date) -> bool:
    if limit is None:
        return True
    if offer.standing != "priced" or offer.price_micros_per_month is None:
        return False
    return offer.price_micros_per_month <= limit_per_month(limit, offer.currency, rates, on)


LARGEST_STORED: Final = (1 << 63) - 1
"""The range of a 64-bit column. Limits are clamped to it, which does not change their meaning."""


def limit_per_month(limit: PriceLimit, currency: str, rates: Rates, on: date) -> int:
    """Return the largest monthly price in `currency` within the limit. Exact, so the limit is inclusive."""
    per_month = limit.micros * (SECONDS["month"] // SECONDS[limit.per])
    if currency != limit.currency:
        per_unit = rates.rate(limit.currency, on).micros_per_usd
        per_month = per_month * rates.rate(currency, on).micros_per_usd // per_unit
    return min(per_month, LARGEST_STORED)


def place_key(provider: str, region: str, zone: str) -> str:
    """Return the key of a place, as stored with each offer."""
    return f"{provider}::{region}::{zone}"


def place_parts(key: str) -> tuple[str, str, str]:
    """Return provider, region and zone of a place."""
    provider, _, rest = key.partition("::")
    region, _, zone = rest.rpartition("::")
    return provider, region, zone


def only_kinds(query: Query) -> bool:
    """Return whether the query has no filters besides cards or kinds and what is hidden by default."""
    plain = Query(
        kinds=query.kinds, gpus=query.gpus, sort=query.sort, refused=query.refused, slices=query.slices,
        outdated=query.outdated,
    )  # fmt: skip
    return query == plain


def usable_ram(offer: Offer) -> int | None:
    return None if SUSPECT_RAM in offer.flags else offer.ram_bytes


def _was_current(offer: Offer, on: date) -> bool:
    """Return whether this was the price on a date."""
    day = on.isoformat()
    return first_day(offer.since) <= day and (not offer.until or day < first_day(offer.until))


def first_day(text: str) -> str:
    """`"2019"` → `"2019-01-01"`. An empty text stays empty and sorts before every date."""
    return text + "-01-01"[len(text) - 4 :] if 4 <= len(text) < 10 else text


# --- order ---------------------------------------------------------------------------------------------------------

SortKey = tuple[int, float, str, str, str, str, int]


def weights(rates: Rates, on: date) -> Mapping[str, int]:
    """Return a factor for each currency. Amounts times their factor compare exactly across currencies."""
    micros_per_usd = {currency: rates.rate(currency, on).micros_per_usd for currency in rates.currencies()}
    whole = lcm(*micros_per_usd.values())
    return {currency: whole // micros for currency, micros in micros_per_usd.items()}


def sort_key(query: Query, weight: Mapping[str, int]) -> Callable[[Offer], SortKey]:
    """Return the sort key: priced offers by the requested measure, then unknown prices, then refused ones. Total."""
    unit = UNITS.get(query.sort)
    figure = figures_of_cards(query.sort)

    def key(offer: Offer) -> SortKey:
        value: float = 0
        rank = _RANK[offer.standing]
        price = offer.price_micros_per_month
        if offer.standing == "priced" and price is not None:
            if unit is None:
                value = price * weight[offer.currency]
            elif (units := unit(offer)) and (each := figure.get(offer.gpu, 0.0) if figure else 1.0):
                value = price / units / each * weight[offer.currency]
            else:
                rank = UNMEASURED_RANK
        return (rank, value, offer.provider, offer.instance_type, offer.region, offer.zone, offer.id)

    return key


def _gpus(offer: Offer) -> float | None:
    return offer.gpu_count


def _tflops(offer: Offer) -> float | None:
    return None if offer.gpu_tflops is None or offer.gpu_count is None else offer.gpu_tflops * offer.gpu_count


def _gigabytes(offer: Offer) -> float | None:
    return offer.gpu_memory_total_bytes


def _whole_cards(offer: Offer) -> float | None:
    return None if offer.gpu_count is None else offer.gpu_share * offer.gpu_count


FIGURE_SORTS: Final[dict[str, str]] = {f"price-per-{name}": name for name in FIGURES}
"""Sorts by a figure of the card → its name in `FIGURES`."""


@cache
def figures_of_cards(sort: str) -> Mapping[str, float]:
    """Return the figure of each card that has it, for a sort by a figure of cards. Empty for other sorts."""
    if sort not in FIGURE_SORTS:
        return {}
    figure = FIGURES[FIGURE_SORTS[sort]]
    return {card.id: value for card in all_cards() if (value := figure(card))}


UNITS: Final[dict[str, Callable[[Offer], float | None]]] = {
    "price-per-gpu": _gpus,
    "price-per-tflops": _tflops,
    "price-per-gb": _gigabytes,
    **dict.fromkeys(FIGURE_SORTS, _whole_cards),
}
"""The divisor of the price for sorts other than `price`. None or zero if the offer lacks the figure.

A sort by a figure of cards divides the result by `figures_of_cards` as well, in this order: the result then has the
order of `price / units` among offers of one card, which is how the store reads them."""


def measure(offer: Offer, sort: str) -> float | None:
    """Return how many units of its sort an offer has: GPUs, TFLOPS, bytes. None if it lacks the figure."""
    unit, figure = UNITS.get(sort), figures_of_cards(sort)
    units = unit(offer) if unit else None
    return units * (figure.get(offer.gpu, 0.0) if figure else 1.0) if units else None


def price_in(
    offer: Offer, currency: str, rates: Rates, on: date, *, per: Period = "hour", each: bool = False
) -> int | None:
    """Return the offer's price in a currency and period: of the machine, or of `each` of its GPUs.

    All shown prices come from here. Returns None if the price or the number of GPUs is unknown.
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
    """Convert a monthly price to another currency and period and divide it into equal parts. Rounds once."""
    numerator, denominator = micros_per_month * SECONDS[per], SECONDS["month"] * parts
    if currency != to:
        numerator *= rates.rate(to, on).micros_per_usd
        denominator *= rates.rate(currency, on).micros_per_usd
    return divided(numerator, denominator)


def folded(offers: Iterable[Offer]) -> Iterator[OfferLine]:
    """Merge offers that differ only in their place into one line. Lazy: reads the offers of one price ahead.

    Prices are the same if they are so to a thousandth per hour, as tables show them. A line has the lowest.
    """
    for _, same_price in groupby(offers, key=lambda each: (each.currency, _thousandths_per_hour(each))):
        lines: dict[tuple[object, ...], list[Offer]] = {}
        for offer in same_price:
            lines.setdefault(_key_without_place(offer), []).append(offer)
        for equal in lines.values():
            places = dict.fromkeys(
                place for offer in equal for place in (offer.region or offer.zone).split("|")
            )
            yield OfferLine(equal[0], tuple(places), len(equal))


def _thousandths_per_hour(offer: Offer) -> int | None:
    price = offer.price_micros_per_month
    return None if price is None else divided(price, HOURS_PER_MONTH * 1000)


def _key_without_place(offer: Offer) -> tuple[object, ...]:
    return (
        offer.provider, offer.instance_type, offer.gpu or offer.gpu_name, offer.gpu_count, offer.gpu_share, offer.vcpus,
        offer.ram_bytes, offer.mode, offer.term_months, offer.currency, _thousandths_per_hour(offer), offer.standing,
        offer.as_of, offer.source, offer.flags,
    )  # fmt: skip
