"""`tera address`: public addresses of instances and balancers."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import in_project, mark_simulated
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import yes_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.table import write_list
from teraflock.words.address import fields, target_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.address import AddressAnswer

HELP: Final = """Manage public addresses: all ports of one lead to an instance or a balancer.

An address comes from the operator's pool and belongs to your project until you release it. It is charged from
`tera address create` to `tera address release`, also while it leads nowhere (`tera price`). Security groups decide what
gets in. What the instance sends to the internet comes from this address.

\b
Examples:
  tera address create
  tera address attach 203.0.113.17 web
  tera address detach 203.0.113.17
  tera address release 203.0.113.17
"""
command = NamingGroup("command", help=HELP)


@command.command("list", help="List public addresses and what they are attached to.")
@in_project
def list_addresses(client: "Client", as_json: bool) -> None:
    found = client.addresses.list()
    mark_simulated(client)
    empty = "No public addresses yet. Take one with `tera address create`"
    write_list(found, fields(SystemClock().now()), as_json=as_json, empty=empty)


@command.command(help="Allocate a public address from the pool. It is charged until you release it.")
@click.argument("address", required=False, default="")
@in_project
def create(client: "Client", address: str, as_json: bool) -> None:
    mark_simulated(client)
    made = client.addresses.create(address)
    if as_json:
        write_json(made)
        return
    click.echo(made.address)
    remark(f"Attach it with `tera address attach {made.address} INSTANCE`")


@command.command(help="Attach a public address to an instance or a load balancer.")
@click.argument("address")
@click.argument("target", metavar="INSTANCE|BALANCER")
@in_project
def attach(client: "Client", address: str, target: str, as_json: bool) -> None:
    _tell(client.addresses.attach(address, target), as_json)


@command.command(help="Detach a public address. Your project keeps it.")
@click.argument("address")
@in_project
def detach(client: "Client", address: str, as_json: bool) -> None:
    _tell(client.addresses.detach(address), as_json)


@command.command(help="Return a public address to the pool. Other tenants may get it.")
@click.argument("address")
@yes_option
@in_project
def release(client: "Client", address: str, yes: bool, as_json: bool) -> None:
    found = [each for each in client.addresses.list() if address in (each.address, each.id)]
    if found and not yes:
        confirm(f"Release the address {found[0].address}? You may not get it again.", "Releasing")
    client.addresses.release(address)
    tell(found[0], f"Released {found[0].address}", as_json)


def _tell(address: "AddressAnswer", as_json: bool) -> None:
    tell(address, f"{address.address} leads to {target_text(address)}", as_json)
