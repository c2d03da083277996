"""A provider as JSON, for `tera providers --json` and `GET /v1/providers`."""

import msgspec

from teraflock.catalog.providers import Provider, ProviderFacts, provider_facts
from teraflock.catalog.renting import Renting, renting


class ProviderShape(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    name: str
    kind: str
    facts: ProviderFacts | None
    """Facts about the provider, each with its evidence. `null` if only the name is known."""
    renting: Renting
    """What Teraflock can do with an account there."""


def shape_provider(provider: Provider) -> ProviderShape:
    return ProviderShape(
        provider=provider.id,
        name=provider.name,
        kind=provider.kind,
        facts=provider_facts(provider.id),
        renting=renting(provider.id),
    )
