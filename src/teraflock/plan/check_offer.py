"""Check the offers of a plan independently: place, date, machine and price. Shares no code with the planner.

`check.py` verifies the shapes. A shown choice also has an offer, which was read from the store. This module computes
its place from the table of regions, and its monthly price from the quoted one.
"""

from collections.abc import Iterator
from typing import Final

from teraflock.catalog.places import Area, countries_by_code, places_of
from teraflock.offer.model import Offer
from teraflock.plan.model import Choice, Wish

HOURS: Final = {"second": 730 * 3600, "hour": 730, "month": 1}
SAME: Final = (
    "provider", "instance_type", "gpu", "gpu_count", "gpu_share", "mode", "term_months", "currency", "as_of",
    "price_micros_per_month",
)  # fmt: skip


def offer_faults(choice: Choice, wish: Wish) -> Iterator[str]:
    """List what is wrong with the offer of a choice. Empty if it is correct."""
    offer, shape = choice.offer, choice.shape
    if offer is None:
        yield f"{shape.provider} {shape.instance_type}: no offer has this shape"
        return
    named = f"offer {offer.provider} {offer.instance_type} {offer.region}"
    for name in SAME:
        if getattr(offer, name) != getattr(shape, name):
            yield f"{named}: its {name} differs from that of the shape"
    if wish.sources and offer.source not in wish.sources:
        yield f"{named}: its source was not requested"
    if offer.mode == "owned":
        return
    if wish.newer_than and not (offer.as_of and offer.as_of >= wish.newer_than):
        yield f"{named}: its price is older than {wish.newer_than}"
    if offer.outdated and not wish.sources:
        yield f"{named}: its price is outdated"
    if not _is_right_place(offer, wish):
        yield f"{named}: its place was not requested"
    if offer.quoted:
        parts = (offer.gpu_count or 1) if offer.basis == "gpu" else 1
        monthly = offer.quoted.micros * HOURS[offer.quoted.per] * parts
        if monthly != offer.price_micros_per_month or offer.quoted.currency != offer.currency:
            yield f"{named}: its price is not the quoted one"


def _is_right_place(offer: Offer, wish: Wish) -> bool:
    wanted = wish.places
    codes = {place.country for place in places_of(offer.provider, offer.region, offer.zone)}
    for areas in (wanted.regions, wanted.countries):
        if areas and not any(_is_in(area, codes, offer) for area in areas):
            return False
    if any(area.kind != "name" for area in wanted.not_in) and "" in codes:
        return False
    return not any(_is_in(area, codes, offer) for area in wanted.not_in)


def _is_in(area: Area, codes: set[str], offer: Offer) -> bool:
    if area.kind == "name":
        cities = (place.city for place in places_of(offer.provider, offer.region, offer.zone))
        return any(area.code in name.casefold() for name in (f"{offer.region} {offer.zone}", *cities))
    countries = [countries_by_code()[code] for code in codes if code]
    if area.kind == "country":
        return area.code in codes
    if area.kind == "continent":
        return any(country.continent == area.code for country in countries)
    outside = {"IS", "LI", "NO"} if area.code == "EEA" else set[str]()
    return any(country.eu or country.code in outside for country in countries)
