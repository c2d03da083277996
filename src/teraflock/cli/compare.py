"""`tera compare`: print providers, GPU models, terms and prices as one table for a document."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from html import escape
from typing import Any, Final

import click

from teraflock.app.local import Local
from teraflock.base.money import decimal_text
from teraflock.catalog.providers import provider_facts
from teraflock.cli.offer.filters import OneOf, filter_options
from teraflock.cli.offer.footer import UNSURE_PRICE, exchange_texts, left_out_text, unsure_gpu
from teraflock.cli.output import remark, write_csv, write_json
from teraflock.cli.provider import short_fact
from teraflock.offer.comparison import ComparedCard, ComparedProvider, by_card, by_provider
from teraflock.offer.model import MODES, NOTHING_EXCLUDED
from teraflock.offer.rules import price_in
from teraflock.offer.words import OfferWords, query_from
from teraflock.wire.comparison import PriceOf, shape_card_row, shape_provider_row

FORMATS: Final = ("markdown", "csv", "html", "json")
SHOWN_MODES: Final = (*MODES, "unknown")
GPUS_NAMED: Final = 4
Row = ComparedCard | ComparedProvider

HELP: Final = """Compare providers, GPU models and prices in one table, as Markdown, CSV, HTML or JSON.

Each row is one provider and GPU model, with the cheapest GPU-hour in each purchase mode and the provider's terms. With
`--by provider`, each row is one provider with its cheapest card in each mode. An empty cell means not offered,
`unknown` means offered without a known price, and `?` marks what is not certain. Takes the filters of `tera offers`.

\b
Examples:
  tera compare --gpu V100 --gpu P100 > comparison.md
  tera compare --by provider
  tera compare --memory-min 40 --format html > comparison.html
"""


@click.command(help=HELP)
@filter_options
@click.option(
    "--by",
    type=OneOf("view", ("gpu", "provider")),
    default="gpu",
    show_default=True,
    help="One row per provider and GPU model, or one per provider.",
)
@click.option(
    "--format",
    "form",
    type=OneOf("format", FORMATS),
    default="markdown",
    show_default=True,
    help="Output format.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as `--format json`.")
def command(form: str, by: str, as_json: bool, **words: Any) -> None:
    asked = OfferWords(**words)
    with Local() as local:
        service = local.offers()
        currency = local.rates.known(asked.currency)
        query = query_from(asked, service.providers, service.today())
        for name in service.excludes_nothing(query.places):
            remark(f"Note: {NOTHING_EXCLUDED.format(name=name)}")
        found = service.cheapest_by_provider(query)
        on = service.day_of(query)
        price = partial(price_in, currency=currency, rates=local.rates, on=on, each=True)
    rows: Sequence[Row] = (by_provider if by == "provider" else by_card)(found.cheapest)
    if as_json or form == "json":
        write_json([_shape(row, currency, price) for row in rows])
    else:
        _write_text(form, *_texts(rows, by, currency, price))
    if not rows:
        remark("No offers match")
    for sentence in exchange_texts((each.offer for each in found.cheapest), currency, local.rates, on):
        remark(sentence)
    if found.retired:
        remark(left_out_text(found.retired, "`--source NAME` compares them too"))


def _shape(row: Row, currency: str, price: PriceOf) -> object:
    if isinstance(row, ComparedProvider):
        return shape_provider_row(row, currency, price)
    return shape_card_row(row, currency, price)


def _texts(rows: Sequence[Row], by: str, currency: str, price: PriceOf) -> tuple[list[str], list[list[str]]]:
    modes = [mode for mode in SHOWN_MODES if any(mode in row.best for row in rows)]
    subject = ["provider", "GPU", "memory"] if by == "gpu" else ["provider", "GPUs", "regions"]
    head = [*subject, *(_title(mode, currency) for mode in modes), "billed per", "notice",
            "disk after reclaim", *(["availability", "support"] if by == "provider" else []), "prices of"]  # fmt: skip
    return head, [[*_cells(row, modes, price)] for row in rows]


def _title(mode: str, currency: str) -> str:
    return f"{'unknown mode' if mode == 'unknown' else mode}, {currency}/GPU-hour"


def _cells(row: Row, modes: Sequence[str], price: PriceOf) -> Iterator[str]:
    yield row.provider
    if isinstance(row, ComparedProvider):
        more = f" +{len(row.gpus) - GPUS_NAMED}" if len(row.gpus) > GPUS_NAMED else ""
        yield ", ".join(row.gpus[:GPUS_NAMED]) + more
        yield str(row.regions) if row.regions else "unknown"
    else:
        memory = next(iter(row.best.values())).gpu_memory_bytes
        yield row.gpu
        yield f"{memory >> 30} GB" if memory else ""
    for mode in modes:
        yield _price(row, mode, price)
    facts = provider_facts(row.provider)
    yield short_fact(facts.billing_step_seconds) if facts else ""
    yield short_fact(facts.notice_seconds) if facts else ""
    yield short_fact(facts.disk_after_reclaim) if facts else ""
    if isinstance(row, ComparedProvider):
        yield short_fact(facts.availability) if facts else ""
        yield short_fact(facts.support) if facts else ""
    days = sorted({offer.as_of for offer in row.best.values() if offer.as_of})
    yield " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "unknown"


def _price(row: Row, mode: str, price: PriceOf) -> str:
    offer = row.best.get(mode)
    if offer is None:
        return ""
    micros = price(offer)
    amount = "free" if mode == "free" else "unknown" if micros is None else decimal_text(micros, 3)
    doubt = "" if UNSURE_PRICE.isdisjoint(offer.flags) else "?"
    if isinstance(row, ComparedProvider) and offer.gpu:
        return f"{amount}{doubt} ({offer.gpu}{unsure_gpu(offer)})"
    return amount + (doubt or unsure_gpu(offer))


def _write_text(form: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if form == "csv":
        write_csv(head, rows)
    else:
        click.echo("\n".join(_html(head, rows) if form == "html" else _markdown(head, rows)))


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(head), line(["---"] * len(head)), *map(line, rows)]


def _html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return ["<table>", line(head, "th"), *(line(row, "td") for row in rows), "</table>"]
