"""The notes of a plan: what the reader must know about the choices that are shown."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

from teraflock.base.quantities import count_text
from teraflock.catalog.cards import cards_by_id
from teraflock.catalog.costs import EXTRA_WORDS, Extra, costs_of
from teraflock.catalog.providers import CONFIRMED
from teraflock.catalog.retired import retired_on
from teraflock.estimate.cards import evidence, evidence_kind
from teraflock.offer.rules import first_day
from teraflock.plan.assumptions import Assumptions
from teraflock.plan.model import Choice, Wish
from teraflock.plan.rules import OLD_PRICE_DAYS

PROVIDERS_SHOWN: Final = 6
CAPABILITY_MIN: Final = 5.0
"""The lowest CUDA compute capability for which PyTorch 2.1 and later are built. Kepler has 3.x."""
ROUGH: Final = frozenset({"never", "rocm"})
"""Kinds of evidence that are no more than a data sheet."""


def plan_warnings(
    shown: Sequence[Choice], choices: Sequence[Choice], wish: Wish, assumptions: Assumptions, on: date
) -> Iterator[str]:
    yield from _uncounted(choices)
    yield from _unconfirmed(shown, wish)
    if wish.use == "monthly":
        yield from _stopped(shown)
    yield from _old_prices(shown, on)
    yield from _of_named_sources(shown)
    unclear = [choice for choice in shown if choice.offer and "unclear:host" in choice.offer.flags]
    if unclear:
        yield f"{len(unclear)} of {len(shown)} prices may cover the GPU only, without its host"
    if wish.use != "job":
        yield from _interrupted(shown)
    yield from _unsupported(shown)
    yield from _rough(shown)
    yield from _networks(shown, assumptions)


def _uncounted(choices: Sequence[Choice]) -> Iterator[str]:
    """Say which requested costs are missing, at which providers. Without this, a plan would compare unequal costs."""
    missing: dict[Extra, dict[str, None]] = {}
    for choice in choices:
        for extra in choice.uncounted:
            missing.setdefault(extra, {})[choice.shape.provider] = None
    for extra, providers in missing.items():
        count = sum(extra in choice.uncounted for choice in choices)
        names = list(providers)
        more = f" and {len(names) - PROVIDERS_SHOWN} more" if len(names) > PROVIDERS_SHOWN else ""
        yield (
            f"the price of the {EXTRA_WORDS[extra]} is unknown at {', '.join(names[:PROVIDERS_SHOWN])}{more}:"
            f" {count_text(count, 'option')} without it, marked `+`"
        )


def _unconfirmed(shown: Sequence[Choice], wish: Wish) -> Iterator[str]:
    """Say which prices besides rent come from a third party. They decide the order of cheap machines."""
    doubted: dict[str, dict[str, None]] = {}
    for choice in shown:
        provider = choice.shape.provider
        known = costs_of(provider)
        prices = {"disk": known.disk, "egress": known.egress, "address": known.address}
        if wish.disk_micros_per_gb(provider) is not None:
            prices["disk"] = None
        if wish.egress_micros_per_gb is not None:
            prices["egress"] = None
        for part in choice.parts:
            price = prices.get(part.what)
            if price and price.evidence not in CONFIRMED:
                doubted.setdefault(part.what, {})[provider] = None
    for extra, words in EXTRA_WORDS.items():
        if extra in doubted:
            yield f"the price of the {words} at {', '.join(doubted[extra])} is not confirmed by the provider"


def _stopped(shown: Sequence[Choice]) -> Iterator[str]:
    """Say where a machine must be ended between uses, because the plan counts the hours of use only."""
    rented = {choice.shape.provider for choice in shown if choice.shape.mode in ("on-demand", "spot", "bid")}
    for provider in sorted(rented):
        if why := costs_of(provider).stopped_machine:
            yield f"end the machine between uses at {provider}: {why}"


def _interrupted(shown: Sequence[Choice]) -> Iterator[str]:
    """Say that the hours of machines that can be taken back were given, and so do not include what that costs."""
    if count := sum(bool(choice.interruptions) for choice in shown):
        yield (
            f"the provider can take back {count} of {len(shown)} choices at any time; the given hours include no"
            " restarts and no lost work"
        )


def _old_prices(shown: Sequence[Choice], on: date) -> Iterator[str]:
    ages = [_age_days(choice.shape.as_of, on) for choice in shown if choice.shape.as_of]
    old = [age for age in ages if age > OLD_PRICE_DAYS]
    if old:
        oldest = max(old) // 30
        yield f"the prices of {len(old)} of {len(shown)} choices are older than six months, the oldest {oldest} months"
    if unknown := sum(not choice.shape.as_of and choice.shape.mode != "owned" for choice in shown):
        yield f"the date of {unknown} of {len(shown)} prices is unknown"


def _of_named_sources(shown: Sequence[Choice]) -> Iterator[str]:
    """Say what only offers of sources that the user names may be: outdated or retired."""
    if outdated := sum(choice.shape.outdated for choice in shown):
        yield f"a newer price is stored for {outdated} of {len(shown)} choices; leave out `--source` to plan with it"
    retired = {
        f"{shape.instance_type} on {day}"
        for shape in (choice.shape for choice in shown)
        if (day := retired_on(shape.provider, shape.instance_type))
    }
    if retired:
        yield f"retired by the provider, and probably not to be had: {', '.join(sorted(retired))}"


def _age_days(as_of: str, on: date) -> int:
    return (on - date.fromisoformat(first_day(as_of))).days


def _unsupported(shown: Sequence[Choice]) -> Iterator[str]:
    cards = {choice.shape.gpu: cards_by_id().get(choice.shape.gpu) for choice in shown}
    old = [
        card.id
        for card in cards.values()
        if card and card.cuda and float(card.compute_capability) < CAPABILITY_MIN
    ]
    if old:
        yield f"PyTorch 2.1 and later do not run on {', '.join(old)}; it needs PyTorch 1.13 or 2.0 with CUDA 11"


def _rough(shown: Sequence[Choice]) -> Iterator[str]:
    """Say which times no measurement supports: of generations that nobody measured, and of AMD's cards."""
    names: dict[str, dict[str, None]] = {}
    for choice in shown:
        card = cards_by_id().get(choice.shape.gpu)
        if card and evidence_kind(card) in ROUGH and choice.hours.p10 != choice.hours.p90:
            names.setdefault(evidence(card), {})[card.id] = None
    for text, its in names.items():
        yield f"the time on {', '.join(its)} is a {text}"


def _networks(shown: Sequence[Choice], assumptions: Assumptions) -> Iterator[str]:
    networks = {
        assumptions.network(choice.shape.instance_type): choice.shape.instance_type
        for choice in shown
        if choice.instances > 1
    }
    for (gbps, because), instance_type in networks.items():
        example = f" such as {instance_type}" if instance_type else ""
        yield (
            f"the plan uses {gbps:g} Gbit/s between machines{example} ({because});"
            " communication is computed, not measured"
        )
