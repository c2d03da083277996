"""`tera network`: networks, peerings, which connections pass, and who can reach whom."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.names import check_name
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.deletion import delete_named
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option, yes_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.pages import project_ref
from teraflock.cli.table import write_list, write_table
from teraflock.words.network import (
    deciding_text,
    fields,
    instance_fields,
    network_fields,
    peer_text,
    peering_fields,
    picture,
)
from teraflock.words.subnet import fields as subnet_fields

if TYPE_CHECKING:
    from teraflock.client.client import Client

HELP: Final = """Manage the networks of a project, and check which connections pass.

A project has the network `default`, which its first launch creates. In a network, instances reach each other as far as
their security groups allow. Between two networks, nothing passes unless they are peered.

\b
Examples:
  tera network create backend
  tera launch --name db --network backend
  tera launch --name web --network default --network backend
  tera network check --from web --to db --port 5432
  tera network graph --svg > network.svg
"""
PEER_HELP: Final = """Request a peering with another network, or accept its request.

Packets cross when the owners of both networks have run this command. The security groups of both ends must allow the
connection, too; a rule names the addresses of the other network, because `sg:` names only groups of your own project.
For a project that you cannot access, use its id. Either side ends the peering with `tera network unpeer`.

\b
Examples:
  tera network peer default --with vision/backend
  tera network peer default --with prj_01h8x.../default
  tera network peer default --with backend
"""
CHECK_HELP: Final = """Say whether a connection would pass, and which rules decide. Nothing is sent.

An end is an instance, a load balancer as `lb:NAME`, `internet`, or an address. A public address of the project means
the instance or balancer that it leads to. With an IPv6 address or `--ipv6`, the connection uses IPv6. The exit code is
0 if the connection passes and 1 if it is stopped.

\b
Examples:
  tera network check --from internet --to web --port 22
  tera network check --from 203.0.113.7 --to web --port 443
  tera network check --from internet --to lb:front --port 443
  tera network check --from web --to db --protocol udp --port 53
  tera network check --from web --to internet --protocol icmp
"""
STOPPED: Final = 1
command = NamingGroup("command", help=HELP)


@command.command("list", help="List networks with their addresses.")
@in_project
def list_networks(client: "Client", as_json: bool) -> None:
    found = client.networks.list()
    mark_simulated(client)
    empty = "No networks yet. The first launch creates `default`; `tera network create NAME` creates more"
    write_list(found, network_fields(), as_json=as_json, empty=empty)


@command.command(help="Show a network: subnets, instances, peerings.")
@click.argument("name")
@in_project
def show(client: "Client", name: str, as_json: bool) -> None:
    network = client.networks.get(name)
    mark_simulated(client)
    if as_json:
        write_json(network)
        return
    click.echo(f"{network.name}  {network.cidr}, gateway {network.gateway}")
    click.echo(f"{'IPv6':<{len(network.name)}}  {network.ipv6_cidr}\n" if network.ipv6_cidr else "")
    write_table(subnet_fields(), network.subnets)
    if network.instances:
        click.echo()
        write_table(instance_fields(), network.instances)
    if network.peerings:
        click.echo()
        write_table(peering_fields(), network.peerings)
    for each in network.peerings:
        if each.state == "offered":
            words = f"tera network peer {name} --with {each.project_id}/{each.network}"
            remark(f"\n`{peer_text(each)}` asks for a peering. Accept it with `{words}`")


@command.command(help="Create a network. It counts against the quota of the project.")
@click.argument("name")
@in_project
def create(client: "Client", name: str, as_json: bool) -> None:
    made = client.networks.create(check_name(name, "a network"))
    tell(
        made,
        f"Created network `{made.name}` with {made.cidr}. Use it with `tera launch --network {made.name}`",
        as_json,
    )


@command.command(help="Delete a network that no instance and no ACL uses. Its peerings end.")
@click.argument("name")
@yes_option
@in_project
def delete(client: "Client", name: str, yes: bool, as_json: bool) -> None:
    delete_named(client.networks, name, "network", yes=yes, as_json=as_json)


@command.command(help=PEER_HELP)
@click.argument("name", metavar="NETWORK")
@click.option("--with", "peer", required=True, metavar="[PROJECT/]NETWORK", help="The other network.")
@project_option
@json_option
def peer(name: str, peer: str, project: str | None, as_json: bool) -> None:
    with connected(project) as client:
        found = client.networks.peer(name, *_peer(client, peer, project))
    if as_json:
        write_json(found)
    elif found.state == "active":
        remark(
            f"`{name}` and `{peer}` are peered. {found.cidr} is reachable, as far as security groups allow"
        )
    else:
        remark(f"Requested. The peering is active when the owner of `{peer}` agrees")


@command.command(
    help="End a peering, withdraw a request, or decline one. Connections between the networks are cut."
)
@click.argument("name", metavar="NETWORK")
@click.option("--with", "peer", required=True, metavar="[PROJECT/]NETWORK", help="The other network.")
@project_option
@json_option
def unpeer(name: str, peer: str, project: str | None, as_json: bool) -> None:
    with connected(project) as client:
        client.networks.unpeer(name, *_peer(client, peer, project))
        network = client.networks.get(name)
    tell(network, f"`{name}` and `{peer}` are not peered any more", as_json)


def _peer(client: "Client", text: str, project: str | None) -> tuple[str, str]:
    """The project and the network. Without a project, both networks are in the same one."""
    ref, slash, name = text.rpartition("/")
    if not name or (slash and not ref) or "/" in ref:
        raise BadInput(f"`{text[:80]}` is not a network", hint="Write `PROJECT/NETWORK`")
    return (ref if slash else project_ref(client, project)), name


@command.command(help=CHECK_HELP)
@click.option("--from", "source", required=True, metavar="END", help="Where the connection starts.")
@click.option("--to", "target", required=True, metavar="END", help="Where it goes.")
@click.option(
    "--protocol",
    type=click.Choice(["tcp", "udp", "icmp"]),
    default="tcp",
    show_default=True,
    help="The protocol.",
)
@click.option("--port", default="", metavar="N", help="The port of the target. Not for ICMP.")
@click.option("--ipv6", is_flag=True, help="Use the IPv6 addresses of both ends.")
@in_project
def check(
    client: "Client", source: str, target: str, protocol: str, port: str, ipv6: bool, as_json: bool
) -> None:
    found = client.networks.check(source, target, protocol=protocol, port=port, ipv6=ipv6)
    mark_simulated(client)
    if as_json:
        write_json(found)
    else:
        click.echo(found.sentence)
        for title, rule in ((f"out of {source}", found.leaving), (f"into {target}", found.entering)):
            if rule:
                click.echo(f"  {title}: {deciding_text(rule)}")
        if found.hint:
            remark(f"\nhint: {found.hint}")
    if not found.passes:
        raise SystemExit(STOPPED)


@command.command(
    help="List which instances and balancers can reach each other and the internet. `--svg` draws it."
)
@click.option("--svg", "is_svg", is_flag=True, help="Print a picture as SVG.")
@in_project
def graph(client: "Client", is_svg: bool, as_json: bool) -> None:
    found = client.networks.graph()
    mark_simulated(client)
    if as_json:
        write_json(found)
    elif is_svg:
        click.echo(picture(found), nl=False)
    else:
        empty = "No instance can reach anything. Launch one with `tera launch`"
        write_list(found.connections, fields(), as_json=False, empty=empty)
