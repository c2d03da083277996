"""`tera plan server`: servers you own, and what an hour of them costs. Kept on this machine."""

from datetime import date
from typing import Any, Final

import click

from teraflock.app.local import Local
from teraflock.app.owned_servers import read_servers, write_servers
from teraflock.base.clock import today
from teraflock.base.errors import BadInput, unknown_name
from teraflock.base.money import decimal_text, micros_per, parse_micros
from teraflock.base.quantities import parse_memory_bytes
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, with_options
from teraflock.cli.output import columns, remark, tell, write_json
from teraflock.cli.table import Column, render
from teraflock.plan.owned import Server, check, explained, micros_per_month

HELP: Final = """Servers you own, and what an hour of them costs. `tera plan` compares them with rented ones.

The list is kept on this machine. What hosts of the cloud cost is recorded with `tera host cost`.

\b
Examples:
  tera plan server add lab1 --gpu V100 --count 4 --purchase 32000 --years 4 --watts 1600 --power 0.15 --hosting 120 \\
    --staff 300 --utilisation 0.6
  tera plan server list
  tera plan server remove lab1
"""
command = NamingGroup("command", help=HELP)


@command.command("list", help="List your own servers and their cost per hour.")
@json_option
def list_costs(as_json: bool) -> None:
    with Local() as local:
        servers = read_servers(local.home)
    if as_json:
        write_json(servers)
        return
    head = [
        Column("SERVER"),
        Column("GPUS"),
        Column("PER HOUR", right=True),
        Column("PER GPU-HOUR", right=True),
        Column("BECAUSE", flexible=True, worth=6),
    ]
    click.echo(render(head, [_cells(server) for server in servers], columns()))
    if not servers:
        remark("\nNo server yet; see `tera plan server add --help`")


def _cells(server: Server) -> list[str]:
    hourly = micros_per(micros_per_month(server), "hour")
    return [
        server.name,
        f"{server.gpu_count}× {server.gpu}",
        f"{decimal_text(hourly, 3)} {server.currency}",
        f"{decimal_text(round(hourly / server.gpu_count), 3)} {server.currency}",
        explained(server),
    ]


server_options = with_options(
    click.option("--gpu", required=True, metavar="NAME", help="The GPU model, in any spelling."),
    click.option("--count", type=click.IntRange(1, 1000), required=True, help="Number of GPUs."),
    click.option("--purchase", required=True, metavar="AMOUNT", help="Purchase price."),
    click.option("--years", type=float, required=True, help="How many years it is used."),
    click.option("--resale", default="0", metavar="AMOUNT", help="Resale price after these years."),
    click.option("--watts", type=float, default=0.0, help="Power that it draws in use."),
    click.option("--power", default="0", metavar="AMOUNT", help="Price per kWh."),
    click.option("--hosting", default="0", metavar="AMOUNT", help="Space, cooling and security, per month."),
    click.option("--staff", default="0", metavar="AMOUNT", help="Staff, per month."),
    click.option(
        "--utilisation",
        type=float,
        default=1.0,
        show_default=True,
        help="Share of all hours in which it is used.",
    ),
    click.option("--vcpus", type=float, help="vCPUs of the server."),
    click.option("--ram", metavar="GB", help="Main memory of the server."),
    click.option(
        "--currency", default="USD", show_default=True, metavar="CODE", help="Currency of all amounts."
    ),
)
"""The options that describe one server and what it costs."""


@command.command(help="Add a server. Replaces the figures it had before.")
@click.argument("name")
@server_options
@json_option
def add(name: str, as_json: bool, **words: Any) -> None:
    with Local() as local:
        server = server_from(name, words, local.rates.known(words["currency"]), today(local.clock))
        check(server, local.rates)
        others = [each for each in read_servers(local.home) if each.name != name]
        write_servers(local.home, [*others, server])
    if as_json:
        write_json(server)
        return
    cells = _cells(server)
    remark(f"{name}: {cells[2]} an hour, {cells[3]} a GPU-hour: {cells[4]}")


@command.command(help="Remove a server; `tera plan` no longer considers it.")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    with Local() as local:
        servers = {server.name: server for server in read_servers(local.home)}
        if name not in servers:
            raise unknown_name("server", name, list(servers))
        removed = servers.pop(name)
        write_servers(local.home, list(servers.values()))
    tell(removed, f"Removed {name}", as_json)


@click.group(cls=NamingGroup, invoke_without_command=True, hidden=True, help=HELP)
@click.pass_context
@json_option
def hosts(ctx: click.Context, as_json: bool) -> None:
    """The old name of `tera plan server`, kept for one release."""
    new = {None: "list", "add-price": "add", "remove": "remove"}[ctx.invoked_subcommand]
    remark(f"`tera hosts` is deprecated; use `tera plan server {new}`")
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_costs, as_json=as_json)


hosts.add_command(add, "add-price")
hosts.add_command(remove)


def server_from(name: str, words: dict[str, Any], currency: str, day: date) -> Server:
    def amount(option: str) -> int:
        try:
            return parse_micros(words[option])
        except ValueError:
            raise BadInput(
                f"`--{option} {words[option]}` is not an amount of money", hint="Use a number, such as `2.50`"
            ) from None

    return Server(
        name=name,
        gpu=words["gpu"],
        gpu_count=words["count"],
        currency=currency,
        purchase_micros=amount("purchase"),
        years=words["years"],
        resale_micros=amount("resale"),
        watts=words["watts"],
        power_micros_per_kwh=amount("power"),
        hosting_micros_per_month=amount("hosting"),
        staff_micros_per_month=amount("staff"),
        utilisation=words["utilisation"],
        vcpus=words["vcpus"],
        ram_bytes=parse_memory_bytes(words["ram"]) if words["ram"] else None,
        as_of=day.isoformat(),
    )
