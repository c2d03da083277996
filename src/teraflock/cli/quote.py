"""`tera quote`: show the price of an instance before it is launched."""

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from teraflock.base.errors import BadInput
from teraflock.base.money import amount_text
from teraflock.cli.connection import connected
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.shape_options import mode_from, shape_from, shape_options
from teraflock.cli.table import Column, write_rows
from teraflock.wire.instance import ModeWord
from teraflock.wire.quote import QuoteRequest
from teraflock.words.money import hourly_text

if TYPE_CHECKING:
    from teraflock.wire.quote import QuoteAnswer

HELP: Final = """Show the price of an instance per hour, per month, and until a deadline.

\b
Examples:
  tera quote --gpu V100 --gpus 2
  tera quote --gpu A100 --spot --until 2026-12-01T18:00Z
"""
COLUMNS: Final = (Column("PERIOD"), Column("PRICE", right=True))


@click.command(help=HELP)
@shape_options
@click.option(
    "--mode",
    type=click.Choice(list(get_args(ModeWord))),
    help="The purchase mode: `spot` is cheaper for GPUs, vCPUs and RAM, not for disks. [default: on-demand]",
)
@click.option("--spot", is_flag=True, help="Short for `--mode spot`.")
@click.option(
    "--instances",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="N",
    help="The number of instances.",
)
@click.option(
    "--host",
    default="",
    metavar="NAME",
    help="Prices on this host. [default: the highest price of all hosts that could run it]",
)
@click.option("--until", metavar="TIME", help="A deadline with a time zone: `2026-12-01T18:00Z`.")
@project_option
@json_option
def command(
    project: str | None,
    as_json: bool,
    mode: ModeWord | None,
    spot: bool,
    instances: int,
    host: str,
    until: str | None,
    **words: Any,
) -> None:
    request = QuoteRequest(
        shape=shape_from(words),
        mode=mode_from(mode, spot=spot),
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
            remark(f"The price book has no price for {quote.gpu}: these amounts do not include the GPU")
        if quote.region:
            remark(f"Prices differ by region. These are the highest that can apply, in `{quote.region}`")


def rows(quote: "QuoteAnswer", until: str | None = None) -> list[list[str]]:
    money = quote.currency
    made = [
        ["per hour", hourly_text(quote.micros_per_hour, money)],
        ["per month (730 h)", amount_text(quote.micros_per_month, money)],
        ["per month while stopped (disk)", amount_text(quote.micros_stopped_per_month, money)],
    ]
    if quote.minimum_micros:
        made.append(["minimum per run", amount_text(quote.minimum_micros, money)])
    if quote.micros_until is not None:
        made.append([f"until {until}", amount_text(quote.micros_until, money)])
    if quote.egress_micros_per_gb:
        made.append(["per GB sent out", amount_text(quote.egress_micros_per_gb, money)])
    if quote.snapshot_micros_per_gb:
        made.append(["per GB of snapshots and month", amount_text(quote.snapshot_micros_per_gb, money)])
    made.append(["month paid ahead", amount_text(quote.monthly_micros, money)])
    made += [
        [f"per month, reserved for {years} year{'s' * (years != '1')}", amount_text(micros, money)]
        for years, micros in quote.reserved_micros.items()
    ]
    return made


def _deadline(text: str) -> datetime:
    at: datetime | None = None
    with suppress(ValueError):
        at = datetime.fromisoformat(text)
    if at is None or at.tzinfo is None:
        raise BadInput(f"`--until {text}` is not a time with a zone", hint="Write it as `2026-12-01T18:00Z`")
    return at
