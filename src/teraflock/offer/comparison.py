"""Compare providers: the cheapest GPU-hour of each purchase mode, per card or per provider.

Pure. Offers come in the order of their price per GPU, so the first one of a group is its cheapest.
"""

from collections.abc import Iterable

import msgspec

from teraflock.catalog.retired import retired_on
from teraflock.offer.model import Offer


class Cheapest(msgspec.Struct, frozen=True):
    """The cheapest offer of a provider for a card in a purchase mode."""

    offer: Offer
    offers: int
    regions: frozenset[str] = frozenset()


class CheapestFound(msgspec.Struct, frozen=True):
    cheapest: list[Cheapest]
    retired: int
    """The number of offers that were left out, because their provider has retired the type."""


class ComparedCard(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    gpu: str
    best: dict[str, Offer]
    """The cheapest offer in each purchase mode."""


class ComparedProvider(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    gpus: tuple[str, ...]
    """All its cards, GPUs before other accelerators, cheapest first."""
    best: dict[str, Offer]
    regions: int
    offers: int
    dates: tuple[str, ...]
    """The dates of its prices, oldest first."""


def cheapest_of_each(offers: Iterable[Offer], *, with_retired: bool) -> CheapestFound:
    """Return the first offer for each provider, card and mode, with the number of offers and their regions."""
    retired = 0
    first: dict[tuple[str, str, str | None], Offer] = {}
    counts: dict[tuple[str, str, str | None], int] = {}
    regions: dict[tuple[str, str, str | None], set[str]] = {}
    for offer in offers:
        if not with_retired and retired_on(offer.provider, offer.instance_type):
            retired += 1
            continue
        key = (offer.provider, offer.gpu, offer.mode)
        first.setdefault(key, offer)
        counts[key] = counts.get(key, 0) + 1
        if offer.region:
            regions.setdefault(key, set()).update(offer.region.split("|"))
    found = [Cheapest(offer, counts[key], frozenset(regions.get(key, ()))) for key, offer in first.items()]
    return CheapestFound(found, retired)


def by_card(found: Iterable[Cheapest]) -> list[ComparedCard]:
    """One row per provider and card, by its cheapest price in any mode."""
    best: dict[tuple[str, str], dict[str, Offer]] = {}
    for each in found:
        if each.offer.gpu:
            modes = best.setdefault((each.offer.provider, each.offer.gpu), {})
            modes.setdefault(each.offer.mode or "unknown", each.offer)
    return [ComparedCard(provider=key[0], gpu=key[1], best=modes) for key, modes in best.items()]


def by_provider(found: Iterable[Cheapest]) -> list[ComparedProvider]:
    """One row per provider, by its cheapest price in any mode."""
    groups: dict[str, list[Cheapest]] = {}
    for each in found:
        groups.setdefault(each.offer.provider, []).append(each)
    return [_provider(name, group) for name, group in groups.items()]


def _provider(name: str, group: list[Cheapest]) -> ComparedProvider:
    best: dict[str, Offer] = {}
    for each in group:
        mode = each.offer.mode or "unknown"
        if mode not in best or _worth(each.offer) > _worth(best[mode]):
            best[mode] = each.offer
    return ComparedProvider(
        provider=name,
        gpus=tuple(
            dict.fromkeys(
                each.offer.gpu or each.offer.gpu_name
                for each in sorted(group, key=lambda each: each.offer.kind == "other")
            )
        ),
        best=best,
        regions=len(frozenset[str]().union(*(each.regions for each in group))),
        offers=sum(each.offers for each in group),
        dates=tuple(sorted({each.offer.as_of for each in group if each.offer.as_of})),
    )


def _worth(offer: Offer) -> tuple[bool, bool]:
    """A price of a GPU says more than that of another accelerator, and a known price more than an unknown one."""
    return offer.kind != "other", offer.standing == "priced"
