"""`tera bid` and `tera bids`: change a bid, and show what cards cost in auctions."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import BadInput
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import write_json
from teraflock.cli.parse_money import parse_amount
from teraflock.cli.table import write_list
from teraflock.wire.instance import ChangeRequest
from teraflock.words.bid import bid_text, fields

if TYPE_CHECKING:
    from teraflock.client import Client

ROWS: Final = 20
ROWS_MAX: Final = 200
HELP: Final = """Change the bid of an instance: the most that you pay per hour for each of its GPUs.

Bids are for idle GPUs on own hosts. The highest bid runs. A losing instance gets a notice of one minute, is stopped,
keeps its disk, and starts again when its bid is the highest again. The winner pays the highest losing bid, at least the
spot price. Launches on demand come before every bid.

\b
Examples:
  tera launch --gpu A100 --mode bid --bid 1.20 --name train
  tera bid train 1.50
  tera bids --gpu A100
"""
HELP_LIST: Final = """Show what GPUs cost in auctions, newest first.

A price applies until the next one of the same region and GPU model. The price is the highest losing bid, at
least the spot price (the floor). It is per GPU and hour. The list is the same for all projects, and names no bidder.

\b
Examples:
  tera bids
  tera bids --gpu A100-80 --region local --limit 100
"""


@click.command(help=HELP)
@click.argument("name")
@click.argument("price", metavar="PRICE")
@project_option
@json_option
def command(name: str, price: str, project: str | None, as_json: bool) -> None:
    micros = parse_amount(price)
    if micros <= 0:
        raise BadInput(f"`{price}` is not a bid", hint="Bid more than 0: `tera bid NAME 1.50`")
    with connected(project) as client:
        instance = client.instances.change(name, ChangeRequest(bid_micros_per_hour=micros))
        mark_simulated(client)
    if as_json:
        write_json(instance)
    else:
        click.echo(f"{instance.name}: {bid_text(instance)}")


@click.command(help=HELP_LIST)
@click.option("--gpu", default="", metavar="MODEL", help="Only this GPU model.")
@click.option("--region", default="", metavar="NAME", help="Only this region.")
@click.option(
    "--limit",
    type=click.IntRange(1, ROWS_MAX),
    default=ROWS,
    show_default=True,
    help="How many prices to show.",
)
@in_project
def prices(client: "Client", gpu: str, region: str, limit: int, as_json: bool) -> None:
    found = client.bids.page(gpu=gpu, region=region, limit=limit).items
    write_list(found, fields(), as_json=as_json, empty="No auction has taken place")
