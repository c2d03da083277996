"""Providers of GPUs: their names, and facts about them.

Invariants: an id never changes, because stored offers refer to it; every fact has its evidence; a fact that is not
confirmed (`Fact.confirmed` is false) is always shown as not confirmed. Names are in a small CSV file that every command
with `--provider` reads. Facts are in a TOML file that is read on demand.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

import msgspec

from teraflock.base.errors import unknown_name
from teraflock.catalog.cards import data_path, table

Evidence = Literal["sdk", "docs", "catalog", "run", "seed", "third-party", "unconfirmed"]

CONFIRMED: Final = frozenset({"sdk", "docs", "catalog", "run"})
"""Evidence from the provider or its data. A third party's survey of prices (`seed`) does not confirm a fact."""

UNNAMED: Final = "unnamed"


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    kind: Literal["cloud", "market", "notebook", "own"]
    facts: bool = False
    """Whether `provider_facts` has facts about it."""
    aliases: str = ""
    """Other names, separated by `|`."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.id, self.name, *(alias for alias in self.aliases.split("|") if alias))


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact about a provider, as a value, as text, or both. Without either, nothing is known."""

    value: bool | int | str | tuple[str, ...] | None = None
    text: str = ""
    evidence: Evidence

    @property
    def confirmed(self) -> bool:
        return self.evidence in CONFIRMED


class ProviderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a provider. None or an empty tuple means unknown, not no."""

    product: str
    api: Fact
    regions: Fact | None = None
    """Only regions that the sources name. Offers may have more."""
    billing_step_seconds: Fact | None = None
    billing_minimum_seconds: Fact | None = None
    spot: Fact | None = None
    bid: Fact | None = None
    """Whether users can set a price for interruptible instances."""
    notice_seconds: Fact | None = None
    """Time from the notice to the end of a reclaimed instance."""
    disk_after_reclaim: Fact | None = None
    resize: Fact | None = None
    availability: Fact | None = None
    """What the provider promises or publishes about it."""
    support: Fact | None = None
    """Who helps, and at what price."""
    stop_billing: tuple[Fact, ...] = ()
    """What still costs money while an instance is stopped."""
    commitments: tuple[Fact, ...] = ()
    traps: tuple[Fact, ...] = ()


class _FactsInFile(ProviderFacts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """As in our file, where an unknown name is a mistake. A client must accept facts that newer servers add."""


@cache
def all_providers() -> tuple[Provider, ...]:
    return table("providers.csv", Provider)


def find_provider(text: str) -> Provider:
    """Find a provider by id, name or alias. Ignores case and punctuation."""
    found = _by_key().get(_key_of(text))
    if found is None:
        known = [name for provider in all_providers() for name in provider.names]
        raise unknown_name("provider", text, known, see="`tera providers` lists all of them")
    return found


def provider_id(text: str) -> str:
    """Return the id of a known provider, or a slug of an unknown name, so that imports keep every provider."""
    found = _by_key().get(_key_of(text))
    return found.id if found else _slug(text)


@cache
def is_market(known_id: str) -> bool:
    """Return whether each offer of the provider is one machine of somebody, which exists once."""
    return any(each.id == known_id and each.kind == "market" for each in all_providers())


def provider_facts(known_id: str) -> ProviderFacts | None:
    """Return the facts about the provider with this id, or None if there are none."""
    return _facts_by_id().get(known_id)


@cache
def _by_key() -> Mapping[str, Provider]:
    return {_key_of(name): provider for provider in all_providers() for name in provider.names}


def _key_of(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _slug(text: str) -> str:
    spaced = "".join(character if character.isalnum() else " " for character in text.casefold())
    return "-".join(spaced.split()) or UNNAMED


@cache
def _facts_by_id() -> Mapping[str, ProviderFacts]:
    import tomllib  # imported here because most commands need only names

    with open(data_path("providers.toml"), "rb") as lines:  # noqa: PTH123, see data_path
        return msgspec.convert(tomllib.load(lines), dict[str, _FactsInFile])
