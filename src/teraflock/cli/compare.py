"""`tera compare`: print providers, GPU models, terms and prices as one table for a document."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from typing import Any, Final

import click

from teraflock.app.local import Local
from teraflock.base.money import decimal_text
from teraflock.catalog.providers import Fact, provider_facts
from teraflock.cli.offer.filters import OneOf, filter_options
from teraflock.cli.output import remark, write_csv, write_json
from teraflock.offer.model import Offer
from teraflock.offer.rules import price_in
from teraflock.offer.service import Cheapest
from teraflock.offer.words import OfferWords, query_from

FORMATS: Final = ("markdown", "csv", "html", "json")
MODES: Final = ("on-demand", "spot", "monthly", "reserved")
Price = Callable[[Offer], int | None]
"""Returns the price of one GPU-hour of an offer, in the currency of the table."""

HELP: Final = """Compare providers, GPU models and prices in one table, as Markdown, CSV, HTML or JSON.

Each row is one provider and GPU model, with memory, the cheapest GPU-hour in each purchase mode, and the provider's
terms. Takes the filters of `tera offers`.

\b
Examples:
  tera compare --gpu V100 --gpu P100 > comparison.md
  tera compare --memory-min 40 --format html > comparison.html
"""


@click.command(help=HELP)
@filter_options
@click.option(
    "--format",
    "form",
    type=OneOf("format", FORMATS),
    default="markdown",
    show_default=True,
    help="Output format.",
)
def command(form: str, **words: Any) -> None:
    asked = OfferWords(**words)
    with Local() as local:
        service = local.offers()
        currency = local.rates.known(asked.currency)
        query = query_from(asked, service.providers, service.today())
        found = service.cheapest_by_provider(query)
        price = partial(price_in, currency=currency, rates=local.rates, on=service.day_of(query), each=True)
        rows = _rows(found, price)
    head = [
        "provider",
        "GPU",
        "memory",
        *(f"{mode}, {currency}/GPU-hour" for mode in MODES),
        "billed by",
        "notice",
        "prices of",
    ]
    if form == "json":
        write_json([dict(zip(head, row, strict=True)) for row in rows])
    elif form == "csv":
        write_csv(head, rows)
    else:
        click.echo("\n".join(_html(head, rows) if form == "html" else _markdown(head, rows)))
    if not rows:
        remark("No offers match")


def _rows(found: Sequence[Cheapest], price: Price) -> list[list[str]]:
    """Return one row per provider and GPU model, by the cheapest price in any purchase mode."""
    by_card: dict[tuple[str, str], dict[str, Cheapest]] = {}
    for each in found:
        if each.offer.gpu:
            by_card.setdefault((each.offer.provider, each.offer.gpu), {}).setdefault(
                each.offer.mode or "", each
            )
    return [_row(key, modes, price) for key, modes in by_card.items()]


def _row(key: tuple[str, str], modes: dict[str, Cheapest], price: Price) -> list[str]:
    provider, gpu = key
    some = next(iter(modes.values())).offer
    facts = provider_facts(provider)
    days = sorted({each.offer.as_of for each in modes.values() if each.offer.as_of})
    return [
        provider,
        gpu,
        f"{some.gpu_memory_bytes >> 30} GB" if some.gpu_memory_bytes else "",
        *(_price(modes.get(mode), price) for mode in MODES),
        _fact(facts.billing_step_seconds) if facts else "",
        _fact(facts.notice_seconds) if facts else "",
        " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "unknown",
    ]


def _price(cheapest: Cheapest | None, price: Price) -> str:
    if cheapest is None:
        return ""
    micros = price(cheapest.offer)
    return "unknown" if micros is None else decimal_text(micros, 3)


def _fact(fact: Fact | None) -> str:
    if fact is None:
        return ""
    words = f"{fact.value} s" if isinstance(fact.value, int) else fact.text
    return words if fact.confirmed else f"{words} (not confirmed)"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(head), line(["---"] * len(head)), *map(line, rows)]


def _html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return ["<table>", line(head, "th"), *(line(row, "td") for row in rows), "</table>"]
