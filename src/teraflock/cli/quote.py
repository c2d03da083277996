"""`tera quote`: what a launch will cost, before it starts."""

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.money import amount_text
from teraflock.cli.connection import connected
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.shape_options import shape_from, shape_options
from teraflock.cli.table import Column, write_rows
from teraflock.wire.quote import QuoteRequest
from teraflock.words.money import hourly_text

if TYPE_CHECKING:
    from teraflock.wire.quote import QuoteAnswer

HELP: Final = """What a launch will cost by the hour, by the month, and until a deadline.

\b
Examples:
  tera quote --gpu V100 --gpus 2
  tera quote --gpu A100 --spot --until 2026-12-01T18:00Z
"""
COLUMNS: Final = (Column("WHAT"), Column("COSTS", right=True))


@click.command(help=HELP)
@shape_options
@click.option("--spot", is_flag=True, help="At the spot price: lower for GPUs, vCPU and RAM, not for disks.")
@click.option("--instances", type=click.IntRange(1, 100), default=1, show_default=True, metavar="N")
@click.option(
    "--host", default="", metavar="NAME", help="On this host only; else the dearest it may come to."
)
@click.option("--until", metavar="TIME", help="A deadline with its zone: `2026-12-01T18:00Z`.")
@project_option
@json_option
def command(
    project: str | None,
    as_json: bool,
    spot: bool,
    instances: int,
    host: str,
    until: str | None,
    **words: Any,
) -> None:
    request = QuoteRequest(
        shape=shape_from(words),
        mode="spot" if spot else "on-demand",
        instances=instances,
        until=_deadline(until) if until else None,
        host=host,
    )
    with connected(project) as client:
        quote = client.quotes.get(request)
    if as_json:
        write_json(quote)
    else:
        write_rows(COLUMNS, rows(quote, until))
        if not quote.is_priced:
            remark(f"The price book has no price for {quote.gpu}: the card is not in these amounts")
        if quote.region:
            remark(
                f"Prices depend on the place; these are of the dearest it may come to, in `{quote.region}`"
            )


def rows(quote: "QuoteAnswer", until: str | None = None) -> list[list[str]]:
    money = quote.currency
    made = [
        ["an hour", hourly_text(quote.micros_per_hour, money)],
        ["a month on end (730 h)", amount_text(quote.micros_per_month, money)],
        ["a month stopped (its disk)", amount_text(quote.micros_stopped_per_month, money)],
    ]
    if quote.minimum_micros:
        made.append(["at least", amount_text(quote.minimum_micros, money)])
    if quote.micros_until is not None:
        made.append([f"until {until}", amount_text(quote.micros_until, money)])
    if quote.egress_micros_per_gb:
        made.append(["each GB sent out", amount_text(quote.egress_micros_per_gb, money)])
    if quote.snapshot_micros_per_gb:
        made.append(["each GB of snapshots, a month", amount_text(quote.snapshot_micros_per_gb, money)])
    made.append(["bought by the month", amount_text(quote.monthly_micros, money)])
    made += [
        [f"reserved for {years} year{'s' * (years != '1')}, a month", amount_text(micros, money)]
        for years, micros in quote.reserved_micros.items()
    ]
    return made


def _deadline(text: str) -> datetime:
    at: datetime | None = None
    with suppress(ValueError):
        at = datetime.fromisoformat(text)
    if at is None or at.tzinfo is None:
        raise BadInput(f"`--until {text}` is no time with a zone", hint="Such as `2026-12-01T18:00Z`")
    return at
