"""`tera host`: the servers of the cloud, and what this machine has."""

from typing import Final

import click

from teraflock.base.clock import SystemClock
from teraflock.cli.connection import connected
from teraflock.cli.host_cost import cost
from teraflock.cli.instance.show import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option
from teraflock.cli.output import emphasised, write_json
from teraflock.cli.table import write_list
from teraflock.wire.host import HostChange
from teraflock.words.host import facts, fields, state_text

HELP: Final = """The servers of the cloud: what they have and what of it is free.

For operators. `inspect` works on this machine alone and needs no server.

\b
Examples:
  tera host inspect
  tera host list
  tera host drain lab2
  tera host set lab2 --region north
  tera host allow-out lab2 192.168.10.0/24
  tera host cost set lab2 1.20 USD
"""


@click.group(cls=NamingGroup, help=HELP)
def command() -> None:
    pass


command.add_command(cost)


@command.command(
    help="What this machine has: cards, their memory, driver and health; processors, memory, disk."
)
@json_option
def inspect(as_json: bool) -> None:
    from teraflock.app.installation.inspection import card_facts, facts, inspected

    found = inspected()
    if as_json:
        write_json(found)
        return
    click.echo(emphasised(found.name))
    write_facts(facts(found))
    for card in found.cards:
        click.echo(emphasised(f"\n{card.pci_address}: {card.name or 'a card whose driver does not answer'}"))
        write_facts(card_facts(card))


@command.command("list", help="List our own hosts: what they have, and what of it is held.")
@click.option("--rented", is_flag=True, help="List rented hosts instead. Each was made for one instance.")
@click.option("--all", "is_all", is_flag=True, help="List both kinds.")
@json_option
def list_hosts(rented: bool, is_all: bool, as_json: bool) -> None:
    kind = "all" if is_all else "rented" if rented else "own"
    with connected() as client:
        found = sorted(client.hosts.list(kind=kind), key=lambda host: (host.kind, host.name))
    empty = "No host yet; the server registers those of its engine when it starts"
    if rented:
        empty = "No host is rented"
    write_list(found, fields(SystemClock().now()), as_json=as_json, empty=empty)


@command.command(help="One host with its cards.")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    with connected() as client:
        host = client.hosts.get(name)
    if as_json:
        write_json(host)
        return
    click.echo(emphasised(f"{host.name}: {state_text(host)}"))
    write_facts(facts(host, SystemClock().now()))


@command.command(help="Launch nothing new on a host; what it has stays.")
@click.argument("name")
@json_option
def drain(name: str, as_json: bool) -> None:
    _change(name, HostChange(state="draining"), as_json)


@command.command("set", help="Say in which region a host stands; prices may depend on it.")
@click.argument("name")
@click.option("--region", required=True, metavar="REGION", help="Such as `north`; at first it is `home`.")
@json_option
def set_host(name: str, region: str, as_json: bool) -> None:
    _change(name, HostChange(region=region), as_json)


@command.command(help="Launch on a host again.")
@click.argument("name")
@json_option
def ready(name: str, as_json: bool) -> None:
    _change(name, HostChange(state="ready"), as_json)


@command.command("allow-out")
@click.argument("name")
@click.argument("networks", nargs=-1, metavar="[CIDR]...")
@click.option("--remove", is_flag=True, help="Close these networks again.")
@json_option
def allow_out(name: str, networks: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Let instances of a host reach private networks.

    By default instances reach the internet, and no private, link-local or other special address, nor any network that
    the host itself is attached to. Open only what they need. Without a CIDR this lists what is open.

    \b
    Examples:
      tera host allow-out lab2 192.168.10.0/24    # a file server's network
      tera host allow-out lab2 10.1.2.3/32        # one machine
      tera host allow-out lab2 192.168.10.0/24 --remove
    """
    with connected() as client:
        host = client.hosts.get(name)
        if networks:
            kept = [each for each in host.allow_out if each not in networks]
            host = client.hosts.change(
                name, HostChange(allow_out=tuple(kept if remove else (*kept, *networks)))
            )
    if as_json:
        write_json(host)
    else:
        click.echo(f"{host.name}: instances reach {', '.join(('the internet', *host.allow_out))}")


def _change(name: str, change: HostChange, as_json: bool) -> None:
    with connected() as client:
        host = client.hosts.change(name, change)
    if as_json:
        write_json(host)
    else:
        click.echo(f"{host.name}: {state_text(host)}, region {host.region}")
