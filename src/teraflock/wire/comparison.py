"""A comparison of providers as JSON, for `tera compare --format json`. Numbers are numbers."""

from collections.abc import Callable
from typing import Any

import msgspec

from teraflock.base.filling import filled
from teraflock.catalog.providers import Fact, provider_facts
from teraflock.offer.comparison import ComparedCard, ComparedProvider
from teraflock.offer.model import Offer

PriceOf = Callable[[Offer], int | None]
"""Returns the price of one GPU-hour of an offer, in the currency of the comparison."""


class ComparedPriceShape(msgspec.Struct, frozen=True, kw_only=True):
    price_per_gpu_micros: int | None
    """Per hour. `null` if the source has no price."""
    gpu: str
    instance_type: str
    region: str
    as_of: str
    flags: tuple[str, ...]
    """What is uncertain, as for offers."""


class SecondsFactShape(msgspec.Struct, frozen=True):
    seconds: int | None
    confirmed: bool


class ComparisonShape(msgspec.Struct, frozen=True, kw_only=True):
    """One provider and card, or one provider with all its cards."""

    provider: str
    gpus: tuple[str, ...]
    memory_bytes: int | None
    """Of each GPU. `null` for a provider as a whole."""
    currency: str
    modes: dict[str, ComparedPriceShape]
    regions: int | None
    offers: int | None
    billing_step: SecondsFactShape | None
    notice: SecondsFactShape | None
    disk_after_reclaim: Fact | None
    availability: Fact | None
    support: Fact | None


def shape_card_row(row: ComparedCard, currency: str, price: PriceOf) -> ComparisonShape:
    some = next(iter(row.best.values()))
    return ComparisonShape(
        provider=row.provider,
        gpus=(row.gpu,),
        memory_bytes=some.gpu_memory_bytes,
        currency=currency,
        modes=_modes(row.best, price),
        regions=None,
        offers=None,
        **_facts(row.provider),
    )


def shape_provider_row(row: ComparedProvider, currency: str, price: PriceOf) -> ComparisonShape:
    return ComparisonShape(
        provider=row.provider,
        gpus=row.gpus,
        memory_bytes=None,
        currency=currency,
        modes=_modes(row.best, price),
        regions=row.regions,
        offers=row.offers,
        **_facts(row.provider),
    )


def _modes(best: dict[str, Offer], price: PriceOf) -> dict[str, ComparedPriceShape]:
    return {
        mode: filled(
            ComparedPriceShape, offer, price_per_gpu_micros=price(offer), gpu=offer.gpu or offer.gpu_name
        )
        for mode, offer in best.items()
    }


def _facts(provider: str) -> dict[str, Any]:
    facts = provider_facts(provider)
    return {
        "billing_step": _seconds(facts.billing_step_seconds) if facts else None,
        "notice": _seconds(facts.notice_seconds) if facts else None,
        "disk_after_reclaim": facts.disk_after_reclaim if facts else None,
        "availability": facts.availability if facts else None,
        "support": facts.support if facts else None,
    }


def _seconds(fact: Fact | None) -> SecondsFactShape | None:
    if fact is None:
        return None
    return SecondsFactShape(fact.value if isinstance(fact.value, int) else None, fact.confirmed)
