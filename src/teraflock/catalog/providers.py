"""Who rents out GPUs: names for every command, and what is known of each for those that ask.

What holds: an id never changes, since stored offers refer to it; a fact says where it was read, and one
that nobody confirmed (`Fact.confirmed` is false) is shown as such, never as a fact.
Names are a small CSV, read by every command with `--provider`; the facts are TOML and read only when asked.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

import msgspec

from teraflock.base.errors import unknown_name
from teraflock.catalog.cards import data_path, table

Evidence = Literal["sdk", "docs", "catalog", "run", "seed", "third-party", "unconfirmed"]

CONFIRMED: Final = frozenset({"sdk", "docs", "catalog", "run"})
"""Read at the provider or in its data. A survey of others' prices (`seed`) is no confirmation."""

UNNAMED: Final = "unnamed"


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    kind: Literal["cloud", "market", "notebook", "own"]
    facts: bool = False
    """Whether `provider_facts` knows more."""
    aliases: str = ""
    """Further names, with `|` between them."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.id, self.name, *(alias for alias in self.aliases.split("|") if alias))


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One statement about a provider. Without a value it is text only; without both, nothing is known."""

    value: bool | int | str | tuple[str, ...] | None = None
    text: str = ""
    evidence: Evidence

    @property
    def confirmed(self) -> bool:
        return self.evidence in CONFIRMED


class ProviderFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of a provider. None or an empty tuple: nothing was found, which is not a no."""

    product: str
    api: Fact
    regions: Fact | None = None
    """Only those that the sources name; offers name more."""
    billing_step_seconds: Fact | None = None
    billing_minimum_seconds: Fact | None = None
    spot: Fact | None = None
    bid: Fact | None = None
    """Whether the renter may set a price for interruptible instances."""
    notice_seconds: Fact | None = None
    """Between the notice and the end of a reclaimed instance."""
    disk_after_reclaim: Fact | None = None
    resize: Fact | None = None
    stop_billing: tuple[Fact, ...] = ()
    """What goes on costing money after a stop."""
    commitments: tuple[Fact, ...] = ()
    traps: tuple[Fact, ...] = ()


@cache
def all_providers() -> tuple[Provider, ...]:
    return table("providers.csv", Provider)


def find_provider(text: str) -> Provider:
    """The provider known by this id, name or alias; case and punctuation do not matter."""
    found = _by_key().get(_key_of(text))
    if found is None:
        known = [name for provider in all_providers() for name in provider.names]
        raise unknown_name("provider", text, known, see="`tera providers` lists them all")
    return found


def provider_id(text: str) -> str:
    """The id of a known provider, and for any other name a slug of it: no cloud is lost on import."""
    found = _by_key().get(_key_of(text))
    return found.id if found else _slug(text)


def provider_facts(known_id: str) -> ProviderFacts | None:
    """What is known of the provider with this id; None when only its name is."""
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
    import tomllib  # only here: most commands need the names alone

    with open(data_path("providers.toml"), "rb") as lines:  # noqa: PTH123, see data_path
        return msgspec.convert(tomllib.load(lines), dict[str, ProviderFacts])
