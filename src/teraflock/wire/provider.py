"""A provider as `tera providers --json` and `GET /v1/providers` have it."""

import msgspec

from teraflock.catalog.providers import Provider, ProviderFacts, provider_facts


class ProviderShape(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    name: str
    kind: str
    facts: ProviderFacts | None
    """What is known of it, each fact with where it was read; `null`: no more than its name."""


def shape_provider(provider: Provider) -> ProviderShape:
    return ProviderShape(
        provider=provider.id, name=provider.name, kind=provider.kind, facts=provider_facts(provider.id)
    )
