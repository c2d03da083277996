"""`tera providers`: list providers, or show one in detail."""

from collections.abc import Iterator
from typing import Final

import click

from teraflock.catalog.costs import UNKNOWN, costs_of
from teraflock.catalog.providers import (
    Fact,
    Provider,
    ProviderFacts,
    all_providers,
    find_provider,
    provider_facts,
)
from teraflock.catalog.renting import renting
from teraflock.catalog.series import series_of_provider
from teraflock.cli.complete import complete_provider
from teraflock.cli.output import columns, emphasised, write_json
from teraflock.cli.table import Column, render
from teraflock.wire.provider import shape_provider

HELP: Final = """List providers of GPUs: how they bill, their spot terms and their pitfalls.

The column LAUNCH shows whether you can rent machines there (`tera account add`), and in which modes besides on-demand.
CATALOG shows whether `tera offers refresh` reads its prices. TESTED shows what the driver was tested with; `not live`
means that nobody has reported a run on the real cloud. With NAME, shows one provider in detail. A `?` marks facts that
are not confirmed.

\b
Examples:
  tera providers
  tera providers oracle
"""
_COLUMNS: Final = [
    Column("PROVIDER"),
    Column("NAME", flexible=True, worth=6),
    Column("KIND", worth=4),
    Column("LAUNCH", worth=8),
    Column("CATALOG", worth=7),
    Column("TESTED", worth=9),
    Column("BILLED PER", worth=6),
    Column("SPOT", flexible=True, worth=5),
    Column("NOTICE", worth=6),
    Column("DISK AFTER RECLAIM", flexible=True, worth=5),
]
_LABEL: Final = 20
_IN_SECONDS: Final = frozenset({"billed per", "billed minimum", "notice"})
_DOUBT: Final = {
    "seed": "(from one document)",
    "third-party": "(from a third party)",
    "unconfirmed": "(not confirmed)",
}


@click.command(help=HELP)
@click.argument("name", required=False, shell_complete=complete_provider)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, as_json: bool) -> None:
    chosen = [find_provider(name)] if name else list(all_providers())
    if as_json:
        write_json([shape_provider(each) for each in chosen])
    elif name:
        click.echo("\n".join(_in_full(chosen[0])))
    else:
        click.echo(render(_COLUMNS, [_cells(each) for each in chosen], columns()))


def _cells(provider: Provider) -> list[str]:
    facts = provider_facts(provider.id)
    if facts is None:
        return [provider.id, provider.name, provider.kind, *_driver(provider), "", "", "", ""]
    return [
        provider.id,
        provider.name,
        provider.kind,
        *_driver(provider),
        short_fact(facts.billing_step_seconds),
        short_fact(facts.spot),
        short_fact(facts.notice_seconds),
        short_fact(facts.disk_after_reclaim),
    ]


def _driver(provider: Provider) -> list[str]:
    """Whether machines can be rented there, whether prices are read from it, and how that was tested."""
    found = renting(provider.id)
    if provider.kind == "own":
        return ["yes", "", ""]
    modes = f"yes, {found.spot}" if found.spot else "yes"
    return [modes if found.launch else "no", "live" if found.catalog else "", found.tested_in_short]


def _renting(provider: Provider) -> Iterator[tuple[str, str]]:
    """What Teraflock can do with an account at a provider."""
    found = renting(provider.id)
    if provider.kind == "own":
        return
    yield "launch", f"with an account: `tera account add {provider.id}`" if found.launch else "no"
    yield "live catalog", "yes" if found.catalog else "no"
    yield "spot launches", found.spot or "no"
    if found.launch:
        yield "free capacity", "listed, for `tera plan --available`" if found.stock else "not listed"
        yield "spot notices", "yes" if found.notice else "no"
        yield "ends by itself", "after `--set hours_max=HOURS`" if found.time_limit else "no"
    yield "driver tested", found.tested
    yield "driver lacks", found.missing
    yield "driver assumes", found.assumed and f"{found.assumed} (not confirmed)"


def short_fact(fact: Fact | None) -> str:
    if fact is None:
        return ""
    value = fact.value
    text = _period(value) if isinstance(value, int) and not isinstance(value, bool) else _value(value)
    words = text or fact.text
    return words if fact.confirmed or _says_unconfirmed(words) else f"{words} ?"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value)
    return "" if value is None else str(value)


def _period(seconds: int) -> str:
    names = {0: "none", 1: "second", 60: "minute", 3600: "hour"}
    return names.get(seconds) or (f"{seconds // 60} min" if seconds % 60 == 0 else f"{seconds} s")


def _in_full(provider: Provider) -> Iterator[str]:
    yield emphasised(f"{provider.id}: {provider.name}")
    for name, text in _renting(provider):
        if text:
            yield f"  {name:<{_LABEL}} {text}"
    facts, costs = provider_facts(provider.id), list(_costs(provider))
    if facts is None:
        yield from costs or ["  No details are known besides its offers"]
        return
    yield f"  {'product':<{_LABEL}} {facts.product}"
    for words, fact in _singles(facts):
        if fact:
            yield f"  {words:<{_LABEL}} {_fact_text(fact, seconds=words in _IN_SECONDS)}"
    for words, several in (
        ("costs while stopped", facts.stop_billing),
        ("commitments", facts.commitments),
        ("pitfalls", facts.traps),
    ):
        for i, fact in enumerate(several):
            yield f"  {words if i == 0 else '':<{_LABEL}} {_fact_text(fact)}"
    for i, each in enumerate(series_of_provider(provider.id)):
        yield f"  {'series' if i == 0 else '':<{_LABEL}} {each.series}: {each.text}"
    yield from costs


def _costs(provider: Provider) -> Iterator[str]:
    """Show the prices besides the machine. What is missing is unknown, not free."""
    known = costs_of(provider.id)
    for words, price, unit in (
        ("disk", known.disk, "GB and month"),
        ("outgoing traffic", known.egress, "GB"),
        ("public address", known.address, "hour"),
    ):
        if price:
            free = f", {price.free_gb:g} GB per month free" if price.free_gb else ""
            stopped = f", {price.stopped} while stopped" if price.stopped else ""
            amount = f"{price.price} {price.currency} per {unit}{stopped}{free}"
            yield f"  {words:<{_LABEL}} {amount} ({price.because}; {price.source})"
    if known == UNKNOWN and provider.kind in ("cloud", "market"):
        yield f"  {'other costs':<{_LABEL}} unknown: disk, outgoing traffic, public address"


def _singles(facts: ProviderFacts) -> Iterator[tuple[str, Fact | None]]:
    yield "API", facts.api
    yield "known regions", facts.regions
    yield "billed per", facts.billing_step_seconds
    yield "billed minimum", facts.billing_minimum_seconds
    yield "spot", facts.spot
    yield "bids", facts.bid
    yield "notice", facts.notice_seconds
    yield "disk after reclaim", facts.disk_after_reclaim
    yield "resize", facts.resize
    yield "availability", facts.availability
    yield "support", facts.support


def _fact_text(fact: Fact, *, seconds: bool = False) -> str:
    value = fact.value
    text = (
        _period(value)
        if seconds and isinstance(value, int) and not isinstance(value, bool)
        else _value(value)
    )
    words = ": ".join(part for part in (text, fact.text) if part)
    return words if fact.confirmed or _says_unconfirmed(words) else f"{words} {_DOUBT[fact.evidence]}"


def _says_unconfirmed(words: str) -> bool:
    return "confirmed" in words or "found" in words
