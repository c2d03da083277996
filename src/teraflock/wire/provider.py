"""A provider as JSON, for `tera providers --json` and `GET /v1/providers`."""

import msgspec

from teraflock.catalog.costs import UNKNOWN, ProviderCosts, costs_of
from teraflock.catalog.providers import Provider, ProviderFacts, provider_facts
from teraflock.catalog.renting import Renting, renting
from teraflock.catalog.series import InstanceSeries, series_of_provider


class ProviderShape(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    name: str
    kind: str
    facts: ProviderFacts | None
    """Facts about the provider, each with its evidence. `null` if only the name is known."""
    renting: Renting
    """What Teraflock can do with an account there."""
    series: tuple[InstanceSeries, ...] = ()
    """Series of instance types with their cards and purposes, as far as known."""
    costs: ProviderCosts = UNKNOWN
    """Prices of disks, outgoing traffic and public addresses. `null` means unknown, not free."""


class UsableProviders(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[str, ...]


def shape_provider(provider: Provider) -> ProviderShape:
    return ProviderShape(
        provider=provider.id,
        name=provider.name,
        kind=provider.kind,
        facts=provider_facts(provider.id),
        renting=renting(provider.id),
        series=tuple(series_of_provider(provider.id)),
        costs=costs_of(provider.id),
    )
