"""Assumptions of a plan: defaults from a data file, overridden by options, and listed in the plan."""

import os
from functools import cache
from typing import Final

import msgspec

from teraflock.catalog.providers import provider_facts

PATH: Final = f"{os.path.dirname(__file__)}/data/assumptions.toml"  # noqa: PTH120 -- as in catalog/cards.py


class Assumptions(msgspec.Struct, frozen=True, kw_only=True):
    as_of: str
    interruptions_per_hour: float
    interruptions_by_provider: dict[str, float]
    interruptions_because: str
    restart_seconds: float
    checkpoint_seconds: float
    network_gbps: float
    """Default bandwidth between two machines of one offer."""
    network_because: str
    network_by_type: dict[str, float]
    """Prefix of the instance type, in lower case → bandwidth that the provider publishes."""

    def network(self, instance_type: str) -> tuple[float, str]:
        """Return the Gbit/s between machines of a type and where the figure comes from."""
        name = instance_type.casefold().removeprefix("standard_")
        prefixes = [each for each in self.network_by_type if name.startswith(each)]
        if prefixes:
            return self.network_by_type[max(prefixes, key=len)], "published by the provider"
        return self.network_gbps, self.network_because

    def interruptions(self, provider: str) -> float:
        return self.interruptions_by_provider.get(provider, self.interruptions_per_hour)


class BillingTerms(msgspec.Struct, frozen=True):
    """The billing increment of a provider and the minimum it bills."""

    step_seconds: int
    minimum_seconds: int
    because: str


HOUR_SECONDS = 3600


@cache
def billing_of(provider: str) -> BillingTerms:
    """Return the provider's billing. An unknown increment counts as one hour, so that a plan is never too cheap."""
    facts = provider_facts(provider)
    step, minimum = (facts.billing_step_seconds, facts.billing_minimum_seconds) if facts else (None, None)
    least = minimum.value if minimum and isinstance(minimum.value, int) else 0
    if step and isinstance(step.value, int) and step.value > 0:
        sure = "" if step.confirmed else ", not confirmed"
        return BillingTerms(step.value, least, f"billed per {step.value:,} s{sure}")
    return BillingTerms(HOUR_SECONDS, least, "billing increment unknown, one hour assumed")


class Notice(msgspec.Struct, frozen=True):
    """How long before a spot machine is reclaimed the provider warns."""

    seconds: int
    because: str


@cache
def notice_of(provider: str) -> Notice:
    """Return the provider's notice. A notice that is unknown or not confirmed counts as none."""
    facts = provider_facts(provider)
    notice = facts.notice_seconds if facts else None
    if notice is None or not isinstance(notice.value, int):
        return Notice(0, "the provider is not known to give notice")
    if not notice.confirmed:
        return Notice(0, f"the provider's notice of {notice.value:,} s is not confirmed")
    return Notice(notice.value, f"the provider gives {notice.value:,} s notice")


@cache
def shipped_assumptions() -> Assumptions:
    import tomllib

    with open(PATH, "rb") as file:  # noqa: PTH123
        data = tomllib.load(file)
    return Assumptions(
        as_of=data["as_of"],
        interruptions_per_hour=float(data["interruptions"]["per_hour"]),
        interruptions_by_provider=dict(data["interruptions"].get("by_provider", {})),
        interruptions_because=data["interruptions"]["because"],
        restart_seconds=float(data["restart"]["seconds"]),
        checkpoint_seconds=float(data["checkpoint"]["seconds"]),
        network_gbps=float(data["network"]["gbps"]),
        network_because=data["network"]["because"],
        network_by_type={
            name.casefold(): float(gbps) for name, gbps in data["network"].get("by_type", {}).items()
        },
    )
