"""`tera host cost`: what own hosts cost an hour. For operators."""

from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from teraflock.cli.connection import connected
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.parse import parse_time
from teraflock.cli.parse_money import parse_amount
from teraflock.cli.table import Column, write_rows
from teraflock.words.money import hourly_text
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.host import HostCostAnswer

HELP: Final = """Record what own hosts cost an hour. For operators; no tenant sees it.

`tera bill margin` compares the cost with revenue. Providers report the cost of rented hosts, so you set none there.

A cost counts from its start until you set another one. Nothing is overwritten: `list` shows the history. A cost that
starts in the past changes the days since then; they are booked again.

\b
Examples:
  tera host cost set lab1 1.20 USD
  tera host cost set lab1 1.35 USD --from 2026-11-01
  tera host cost list
  tera host cost remove lab1
"""
COLUMNS: Final = (
    Column("HOST", flexible=True),
    Column("FROM (UTC)"),
    Column("COST", right=True),
    Column("RECORDED (UTC)", worth=4),
)
from_option: Final = click.option(
    "--from",
    "start",
    metavar="DATE",
    help="The day or time when it takes effect: `2026-11-01`, in UTC, or `2026-11-01T12:00+01:00`. Default: now.",
)


@click.group("cost", cls=NamingGroup, help=HELP)
def cost() -> None:
    pass


@cost.command("list", help="List the costs of own hosts, with their history.")
@click.argument("name", required=False)
@json_option
def list_costs(name: str | None, as_json: bool) -> None:
    with connected() as client:
        wanted = client.hosts.get(name).id if name else ""
        found = [each for each in client.hosts.costs() if wanted in ("", each.host_id)]
    if as_json:
        write_json(found)
    elif found:
        write_rows(COLUMNS, [_cells(each) for each in found])
    else:
        remark("No cost is set; `tera host cost set NAME AMOUNT CURRENCY` sets one")


@cost.command("set", help="Set what a host costs per hour, from now on or from another date.")
@click.argument("name")
@click.argument("amount")
@click.argument("currency")
@from_option
@json_option
def set_cost(name: str, amount: str, currency: str, start: str | None, as_json: bool) -> None:
    _record(name, parse_amount(amount), currency.upper(), start, as_json)


@cost.command(help="Remove the cost of a host, from now on or from another date. The history stays.")
@click.argument("name")
@from_option
@json_option
def remove(name: str, start: str | None, as_json: bool) -> None:
    _record(name, None, "", start, as_json)


def _record(name: str, micros: int | None, currency: str, start: str | None, as_json: bool) -> None:
    from teraflock.wire.host import HostCostRequest

    request = HostCostRequest(
        micros_per_hour=micros, currency=currency, starts_at=parse_start(start) if start else None
    )
    with connected() as client:
        made = client.hosts.set_cost(name, request)
    tell(made, f"{made.host}: {_cost_text(made)} from {time_text(made.starts_at)} UTC", as_json)


def parse_start(text: str) -> datetime:
    """A day or a time; UTC unless it has a zone."""
    hint = "Write it as `2026-11-01` or `2026-11-01T12:00+01:00`"
    return parse_time(text, "--from", hint, kind="date")


def _cells(each: "HostCostAnswer") -> list[str]:
    return [each.host, time_text(each.starts_at), _cost_text(each), time_text(each.recorded_at)]


def _cost_text(each: "HostCostAnswer") -> str:
    return "removed" if each.micros_per_hour is None else hourly_text(each.micros_per_hour, each.currency)
