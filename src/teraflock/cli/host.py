"""`tera host`: list and manage hosts, and inspect this machine."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.cli.connection import connected
from teraflock.cli.facts import write_facts
from teraflock.cli.host_cost import cost
from teraflock.cli.host_driver import install_driver
from teraflock.cli.host_join import add, join, leave, remove, serve
from teraflock.cli.host_slice import slice_host
from teraflock.cli.host_upgrade import upgrade
from teraflock.cli.instance.label import parse_changes
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option
from teraflock.cli.output import emphasised, write_json
from teraflock.cli.parse import parse_duration_seconds
from teraflock.cli.table import Column, printable, write_list, write_rows
from teraflock.cli.telemetry import write_chart
from teraflock.client.noun import pages
from teraflock.wire.host import HostChange
from teraflock.words.host import facts, fields, state_text
from teraflock.words.text import details_text

if TYPE_CHECKING:
    from teraflock.wire.operator import LocatedInstance

DRAIN_SECONDS_MAX: Final = 366 * 86_400
HELP: Final = """Add, list and manage hosts: what they have, and what is free. For operators.

`add` prints the command that lets another server join. `inspect`, `install-driver`, `join`,
`leave` and `serve` act on this machine.

\b
Examples:
  tera host inspect
  tera host list
  tera host add --name lab3
  tera host upgrade
  tera host drain lab2 --deadline 2h
  tera host label lab2 zone=a
  tera host set lab2 --region north
  tera host allow-out lab2 192.168.10.0/24
  tera host cost set lab2 1.20 USD
  tera host slice lab2 0 --profile 3g.71gb --profile 3g.71gb
"""
command = NamingGroup("command", help=HELP)


for each in (cost, slice_host, add, remove, upgrade, join, leave, serve, install_driver):
    command.add_command(each)


@command.command(
    help="Show this machine: GPUs with their memory, driver and health; processors, memory, disk."
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


@command.command("list", help="List own hosts: what they have, and what instances hold.")
@click.option("--rented", is_flag=True, help="List rented hosts instead. Each was rented for one instance.")
@click.option("--all", "is_all", is_flag=True, help="List both kinds.")
@json_option
def list_hosts(rented: bool, is_all: bool, as_json: bool) -> None:
    kind = "all" if is_all else "rented" if rented else "own"
    with connected() as client:
        found = sorted(client.hosts.list(kind=kind), key=lambda host: (host.kind, host.name))
    empty = "No hosts yet. The server registers the hosts of its engine when it starts"
    if rented:
        empty = "No rented hosts"
    write_list(found, fields(SystemClock().now()), as_json=as_json, empty=empty)


@command.command(help="Show one host with its cards, and how busy they were.")
@click.argument("name")
@click.option(
    "--period",
    type=click.Choice(["hour", "day", "month"]),
    default="hour",
    show_default=True,
    help="The period of the chart.",
)
@json_option
def show(name: str, period: str, as_json: bool) -> None:
    with connected() as client:
        host = client.hosts.get(name)
        history = client.telemetry.of_host(host.id, period) if host.gpus and not as_json else None
    if as_json:
        write_json(host)
        return
    click.echo(emphasised(f"{host.name}: {state_text(host)}"))
    write_facts(facts(host, SystemClock().now()))
    if history and history.series:
        click.echo(emphasised(f"\nGPU utilisation, last {period}"))
        write_chart(history)


@command.command()
@click.argument("name")
@click.option(
    "--deadline",
    metavar="TIME",
    help="Move instances that may move after this time: `0s` for now, `30m`, `2h`, `1d`.",
)
@json_option
def drain(name: str, deadline: str | None, as_json: bool) -> None:
    """Stop placing new instances on a host. Existing instances stay.

    With `--deadline`, instances with the restart policy `elsewhere` are told at once. At the deadline they are stopped
    and started on other hosts with copies of their disks, each when there is room for it. All other instances stay
    until their tenants stop or delete them.

    \b
    Examples:
      tera host drain lab2
      tera host drain lab2 --deadline 2h
      tera host resume lab2               # take instances again; cancels the deadline
    """
    seconds = parse_duration_seconds(deadline, "--deadline") if deadline is not None else None
    at = None if seconds is None else SystemClock().now() + timedelta(seconds=min(seconds, DRAIN_SECONDS_MAX))
    with connected() as client:
        host = client.hosts.change(name, HostChange(state="draining", drain_at=at))
        found = pages(lambda after: client.operator.instances(host=host.id, after=after))
    if as_json:
        write_json(host)
        return
    click.echo(f"{host.name}: {state_text(host)}, region {host.region}")
    moved = [each for each in found if at and each.instance.restart_policy == "elsewhere"]
    _write_instances("Moved at the deadline", moved)
    stay = [each for each in found if each not in moved]
    _write_instances("Stay until their tenants stop or delete them", stay)


def _write_instances(title: str, some: "Sequence[LocatedInstance]") -> None:
    if some:
        click.echo(f"\n{title}:")
        columns = [Column("INSTANCE"), *(Column(name, flexible=True) for name in ("PROJECT", "ORGANISATION"))]
        write_rows(columns, [(each.instance.name, each.project, each.organisation) for each in some])


@command.command()
@click.argument("name")
@click.argument("changes", nargs=-1, metavar="[KEY=VALUE|KEY-]...")
@json_option
def label(name: str, changes: tuple[str, ...], as_json: bool) -> None:
    """Change the labels of a host: `key=value` sets one, `key-` removes one. Without changes, show them.

    Launches can ask for labels with `--on`. Hosts with the same `zone` in the same region are close to each other:
    `--together` and `--spread zone` use it.

    \b
    Examples:
      tera host label lab2 zone=a disk=ssd
      tera host label lab2 disk-
      tera launch --gpu A100 --on zone=a
    """
    wished = parse_changes(changes)
    with connected() as client:
        host = client.hosts.change(name, HostChange(labels=wished)) if wished else client.hosts.get(name)
    if as_json:
        write_json(host)
    else:
        click.echo(f"{host.name}: {printable(details_text(host.labels)) or 'no labels'}")


@command.command("set", help="Set the region of a host. Prices can differ by region.")
@click.argument("name")
@click.option(
    "--region", required=True, metavar="REGION", help="The region, such as `north`. New hosts are in `home`."
)
@json_option
def set_host(name: str, region: str, as_json: bool) -> None:
    _change(name, HostChange(region=region), as_json)


@command.command(help="Place new instances on a drained host again.")
@click.argument("name")
@json_option
def resume(name: str, as_json: bool) -> None:
    _change(name, HostChange(state="ready"), as_json)


@command.command("allow-out")
@click.argument("name")
@click.argument("networks", nargs=-1, metavar="[CIDR]...")
@click.option("--remove", is_flag=True, help="Remove access to these networks.")
@json_option
def allow_out(name: str, networks: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Let instances of a host reach private networks. Without a CIDR, list the networks they can reach.

    By default instances reach the internet, but no private, link-local or other special address, and no network that
    the host is attached to. Allow only what they need.

    \b
    Examples:
      tera host allow-out lab2 192.168.10.0/24    # the network of a file server
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
        click.echo(f"{host.name}: instances can reach {', '.join(('the internet', *host.allow_out))}")


def _change(name: str, change: HostChange, as_json: bool) -> None:
    with connected() as client:
        host = client.hosts.change(name, change)
    if as_json:
        write_json(host)
    else:
        click.echo(f"{host.name}: {state_text(host)}, region {host.region}")
