"""One line per instance type: the cheapest offer in each purchase mode.

Pure. Offers come in the order of the query, so the first offer of a mode is the best one, and lines have the order of
their best offer.
"""

from collections.abc import Iterable

import msgspec

from teraflock.offer.model import Offer


class InstanceType(msgspec.Struct, frozen=True):
    """A machine that a provider offers, wherever it is."""

    provider: str
    name: str
    gpu: str
    gpu_name: str
    gpu_count: int | None
    gpu_share: float
    gpu_memory_bytes: int | None
    vcpus: float | None
    ram_bytes: int | None


class TypeLine(msgspec.Struct, frozen=True):
    type: InstanceType
    best: dict[str, Offer]
    """The best offer in each purchase mode."""
    offers: int
    regions: int


def by_type(offers: Iterable[Offer]) -> list[TypeLine]:
    best: dict[InstanceType, dict[str, Offer]] = {}
    places: dict[InstanceType, set[str]] = {}
    counts: dict[InstanceType, int] = {}
    for offer in offers:
        key = _type_of(offer)
        best.setdefault(key, {}).setdefault(offer.mode or "unknown", offer)
        places.setdefault(key, set()).update(place for place in offer.region.split("|") if place)
        counts[key] = counts.get(key, 0) + 1
    return [TypeLine(key, modes, counts[key], len(places[key])) for key, modes in best.items()]


def _type_of(offer: Offer) -> InstanceType:
    return InstanceType(
        offer.provider, offer.instance_type, offer.gpu, offer.gpu_name, offer.gpu_count, offer.gpu_share,
        offer.gpu_memory_bytes, offer.vcpus, offer.ram_bytes,
    )  # fmt: skip
