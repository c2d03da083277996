"""`tera subnet`: parts of a project's networks."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.names import check_name
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.facts import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option, yes_option
from teraflock.cli.output import tell, write_json
from teraflock.cli.table import write_list
from teraflock.wire.subnet import SubnetRequest
from teraflock.words.subnet import fields

if TYPE_CHECKING:
    from teraflock.client import Client

HELP: Final = """Manage subnets: parts of a network, each with its own ACL.

Every network has the subnet `default`: all addresses that no other subnet has.

\b
Examples:
  tera subnet create db --prefix 24
  tera subnet create db --network backend --cidr 10.128.17.0/24
  tera launch --name db-1 --subnet db
  tera acl attach border --subnet db
"""
_network_option = click.option(
    "--network", default="default", show_default=True, metavar="NAME", help="The network of the subnet."
)
command = NamingGroup("command", help=HELP)


@command.command("list", help="List subnets with their addresses and ACLs.")
@click.option("--network", default="", metavar="NAME", help="Only those of this network.")
@in_project
def list_subnets(client: "Client", network: str, as_json: bool) -> None:
    found = client.subnets.list(network=network)
    mark_simulated(client)
    empty = "No networks yet. The first launch creates `default`; `tera subnet create NAME` does, too"
    write_list(found, fields(), as_json=as_json, empty=empty)


@command.command(help="Show a subnet and its instances.")
@click.argument("name")
@_network_option
@in_project
def show(client: "Client", name: str, network: str, as_json: bool) -> None:
    found = client.subnets.get(network, name)
    mark_simulated(client)
    if as_json:
        write_json(found)
        return
    write_facts(
        (
            ("subnet", f"{found.network}/{found.name}"),
            ("addresses", found.cidr),
            ("ACL", found.acl or "none"),
            ("instances", ", ".join(found.instances) or "none"),
        )
    )


@command.command(
    help="Create a subnet, with the addresses of `--cidr` or with a free block of the size `--prefix`."
)
@click.argument("name")
@_network_option
@click.option("--cidr", default="", metavar="NETWORK", help="Its addresses, such as `10.128.1.0/24`.")
@click.option("--prefix", type=int, metavar="N", help="Its size: 21 (2,048 addresses) to 29 (8).")
@project_option
@json_option
def create(
    name: str, network: str, cidr: str, prefix: int | None, project: str | None, as_json: bool
) -> None:
    request = SubnetRequest(name=check_name(name, "a subnet"), network=network, cidr=cidr, prefix=prefix)
    with connected(project) as client:
        made = client.subnets.create(request)
    tell(made, f"Created subnet `{made.name}` of the network `{made.network}` with {made.cidr}", as_json)


@command.command(help="Delete a subnet that no instance and no ACL uses.")
@click.argument("name")
@_network_option
@yes_option
@in_project
def delete(client: "Client", name: str, network: str, yes: bool, as_json: bool) -> None:
    found = client.subnets.get(network, name)
    if not yes:
        confirm(f"Delete the subnet `{found.name}`?", "Deleting")
    client.subnets.delete(network, found.name)
    tell(found, f"Deleted subnet `{found.name}`. Its addresses belong to `default` again", as_json)
