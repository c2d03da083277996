"""`tera offers`: list matching offers as a table, JSON or CSV."""

from collections.abc import Iterable
from datetime import date
from typing import Any, ClassVar, Final

import click
from msgspec.structs import replace

from teraflock.app.local import Local
from teraflock.base.errors import BadInput
from teraflock.base.exchange import Rates
from teraflock.base.money import MICROS, Period, decimal_text
from teraflock.base.quantities import GIB, memory_text, significant_text
from teraflock.cli.lazy import LazyGroup
from teraflock.cli.offer.filters import OneOf, filter_options
from teraflock.cli.offer.footer import UNSURE_PRICE, footer, mode_text, unsure_gpu
from teraflock.cli.output import gpus_text, remark, write_csv, write_json
from teraflock.cli.table import Column, write_rows
from teraflock.offer.model import NO_RESERVED, NOTHING_EXCLUDED, Offer, OfferLine, Query
from teraflock.offer.rules import measure, price_in
from teraflock.offer.service import OfferService
from teraflock.offer.words import OfferWords, query_from

LIMIT: Final = 50
LIMIT_MAX: Final = 10**9  # larger than any catalog; `--all` has no limit
SORT_UNITS: Final = {
    "price-per-tflops": "TFLOPS", "price-per-gb": "GB", "price-per-fp64": "FP64-TFLOPS",
    "price-per-fp16": "FP16-TFLOPS", "price-per-int8": "INT8-TOPS", "price-per-fp8": "FP8-TFLOPS",
}  # fmt: skip
PRICE_DECIMALS: Final = {"second": 6, "hour": 3, "month": 2}


class _Offers(LazyGroup):
    commands_by_name: ClassVar = {
        "import": ("teraflock.cli.offer.importing", "Import a catalog from a file or folder"),
        "refresh": ("teraflock.cli.offer.refresh", "Import a catalog from a URL if it has changed"),
        "history": ("teraflock.cli.offer.history", "Show the price of a GPU over time"),
        "regions": ("teraflock.cli.offer.regions", "List the regions of offers and where they are"),
        "sources": ("teraflock.cli.offer.sources", "List the sources of offers and their age"),
    }


HELP: Final = """List GPU offers, cheapest first.

Prices are comparable: per GPU or per instance, per second, hour or month, in any currency. Each offer has a date and a
source, and flags for what is uncertain.

\b
Examples:
  tera offers --gpu V100 --mode on-demand
  tera offers --gpu M40 --gpu P40 --memory-total-min 48 --per month --currency CNY
  tera offers --memory-min 80 --count 8 --sort price-per-tflops
  tera offers --fp64-min 5 --sort price-per-fp64
  tera offers --gpu A100-80 --by type
  tera offers --provider aws --region us-east --price-max '$2' --json
"""


@click.group(cls=_Offers, invoke_without_command=True, help=HELP)
@filter_options
@click.option(
    "--limit",
    type=click.IntRange(1, LIMIT_MAX),
    default=LIMIT,
    show_default=True,
    help="Maximum number of offers to show.",
)
@click.option(
    "--by",
    type=OneOf("view", ("offer", "type")),
    default="offer",
    show_default=True,
    help="`type`: one row per instance type, with the cheapest region in each purchase mode side by side.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Show all offers, also parts of GPUs, outdated prices, and refused prices with their reason.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.pass_context
def command(
    ctx: click.Context, /, limit: int, by: str, everything: bool, as_json: bool, as_csv: bool, **words: Any
) -> None:
    if ctx.invoked_subcommand:
        if given := [
            name
            for name in ctx.params
            if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        ]:
            option = given[0].replace("_", "-")
            raise BadInput(
                f"`--{option}` must come after `{ctx.invoked_subcommand}`",
                hint=f"Write `tera offers {ctx.invoked_subcommand} --{option} …`",
            )
        return
    if as_json and as_csv:
        raise BadInput("`--json` and `--csv` cannot be combined", hint="Use one of them")
    asked = OfferWords(**words)
    with Local() as local:
        service = local.offers()
        currency = local.rates.known(asked.currency)
        query = query_from(asked, service.providers, service.today())
        if everything:
            query = replace(query, refused=True, slices=True, outdated=True)
        for name in service.excludes_nothing(query.places):
            remark(f"Note: {NOTHING_EXCLUDED.format(name=name)}")
        shown = None if everything else limit
        per = asked.period
        if by == "type":
            if as_csv:
                raise BadInput("`--by type` and `--csv` cannot be combined", hint="Use `--json`")
            from teraflock.cli.offer.by_type import write_types

            write_types(service, query, shown, local.rates, currency, per, as_json=as_json)
            if not service.search(query, limit=1).matched:
                remark(no_match(service, query))
        elif as_json or as_csv:
            _write_machine(service, query, shown, local.rates, currency, per, as_json=as_json)
        else:
            _write_table(service, query, shown, local.rates, currency, per)


def _write_machine(
    service: OfferService,
    query: Query,
    limit: int | None,
    rates: Rates,
    currency: str,
    per: Period,
    *,
    as_json: bool,
) -> None:
    from teraflock.wire.offer import csv_cells, csv_header, shape_offer

    answer = service.search(query, limit=limit)
    on = service.day_of(query)
    shapes = [shape_offer(offer, currency=currency, per=per, rates=rates, on=on) for offer in answer.offers]
    if as_json:
        write_json(shapes)
    else:
        write_csv(csv_header(), map(csv_cells, shapes))
    if not answer.matched:
        remark(no_match(service, query))
    elif len(shapes) < answer.matched:
        remark(f"{len(shapes):,} of {answer.matched:,} offers printed; `--all` prints all of them")


def _write_table(
    service: OfferService, query: Query, limit: int | None, rates: Rates, currency: str, per: Period
) -> None:
    listing = service.listing(query, limit=limit)
    on = service.day_of(query)
    rows = [_cells(line, rates, currency, per, on, query.sort) for line in listing.lines]
    write_rows(_columns(currency, per, query.sort), rows)
    if not listing.matched:
        remark(no_match(service, query))
    limit_currency = query.price_max.currency if query.price_max else ""
    told = footer(listing, rates, currency, today=service.today(), on=on, limit_currency=limit_currency)
    for sentence in told:
        remark(sentence)


def no_match(service: OfferService, query: Query) -> str:
    removal = service.removal(query)
    if removal is None:
        return "\nNo offers are stored yet"
    sentence = f"\nNo offers match: `{removal.filter}` removed the last {removal.removed:,}"
    if removal.filter == "--region":
        sentence += ". `tera offers regions` lists the regions"
    return sentence + (f". {NO_RESERVED}" if query.modes == ("reserved",) else "")


def _columns(currency: str, per: Period, sort: str) -> list[Column]:
    unit = SORT_UNITS.get(sort)
    return [
        Column("GPUS", middle=True),
        Column("MEMORY", right=True, worth=6),
        Column("PROVIDER"),
        Column("INSTANCE", flexible=True, worth=7, shortest=12, middle=True),
        Column("REGION", flexible=True, worth=8, shortest=10, middle=True),
        Column("VCPUS", right=True, worth=4),
        Column("RAM", right=True, worth=4),
        Column("MODE", worth=8),
        Column(f"{currency}/{per}", right=True),
        Column("", worth=8),
        Column(f"{currency}/GPU-{per}", right=True, worth=7),
        *([Column(f"{currency}/{unit}-{per}", right=True)] if unit else []),
        Column("AS OF", worth=5),
        Column("FLAGS", flexible=True, worth=3),
    ]


def _cells(
    line: OfferLine, rates: Rates, currency: str, per: Period, on: date, sort: str = "price"
) -> list[str]:
    offer = line.offer
    price = price_text(price_in(offer, currency, rates, on, per=per), per)
    each = price_text(price_in(offer, currency, rates, on, per=per, each=True), per)
    return [
        gpus_text(offer.gpu_count, offer.gpu or offer.gpu_name or "no GPU", offer.gpu_share)
        + unsure_gpu(offer),
        _memory(offer.gpu_memory_bytes, "suspect:memory" in offer.flags),
        offer.provider,
        offer.instance_type,
        line.places[0] + (f" +{len(line.places) - 1}" if len(line.places) > 1 else ""),
        f"{offer.vcpus:g}" if offer.vcpus is not None else "",
        _memory(offer.ram_bytes, "suspect:ram" in offer.flags),
        mode_text(offer),
        price or offer.standing,
        "" if UNSURE_PRICE.isdisjoint(offer.flags) else "?",
        each,
        *(
            [_per_unit(offer, price_in(offer, currency, rates, on, per=per), sort)]
            if sort in SORT_UNITS
            else []
        ),
        offer.as_of or "unknown",
        offer.note if offer.standing == "refused" else _flags(offer.flags),
    ]


def _per_unit(offer: Offer, micros: int | None, sort: str) -> str:
    """The price by which the table is sorted. Empty if the offer lacks the figure."""
    units = measure(offer, sort)
    if micros is None or not units:
        return ""
    return significant_text(micros / MICROS / (units / GIB if sort == "price-per-gb" else units))


def _memory(size_bytes: int | None, doubtful: bool) -> str:
    return f"{memory_text(size_bytes)}{'?' if doubtful else ''}" if size_bytes else ""


def _flags(flags: Iterable[str]) -> str:
    """`inferred:name inferred:gpu slice` → `slice; inferred name, gpu`. Omits what other columns show."""
    plain, kinds = [], dict[str, list[str]]()
    for flag in flags:
        kind, colon, what = flag.partition(":")
        if colon:
            kinds.setdefault(kind, []).append(what)
        elif flag not in ("price-unknown", "price-refused", "free"):
            plain.append(flag)
    return "; ".join([*plain, *(f"{kind} {', '.join(what)}" for kind, what in kinds.items())])


def price_text(micros: int | None, per: Period) -> str:
    return "" if micros is None else decimal_text(micros, PRICE_DECIMALS[per])
