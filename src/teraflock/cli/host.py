"""`tera host`: the servers of the cloud, and what this machine has."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.quantities import bytes_text
from teraflock.cli.connection import connected
from teraflock.cli.host_cost import cost
from teraflock.cli.instance.show import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option
from teraflock.cli.output import columns, emphasised, remark, write_json
from teraflock.cli.table import Column, render
from teraflock.cli.words import SIMULATED, age_text
from teraflock.wire.host import HostChange

if TYPE_CHECKING:
    from teraflock.wire.host import HostAnswer

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
COLUMNS: Final = (
    Column("HOST", flexible=True),
    Column("STATE"),
    Column("GPUS", flexible=True, worth=8),
    Column("GPUS FREE", right=True, worth=7),
    Column("VCPUS HELD", right=True, worth=6),
    Column("RAM HELD", right=True, worth=6),
    Column("DISK HELD", right=True, worth=4),
    Column("POOL FULL", right=True, worth=6),
    Column("ADDRESS", worth=5),
    Column("REGION", worth=2),
    Column("SITE", worth=2),
    Column("SEEN", right=True, worth=3),
)


@click.group(cls=NamingGroup, help=HELP)
def command() -> None:
    pass


command.add_command(cost)


@command.command(
    help="What this machine has: cards, their memory, driver and health; processors, memory, disk."
)
@json_option
def inspect(as_json: bool) -> None:
    from teraflock.app.house.inspection import card_facts, facts, inspected

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
    if as_json:
        write_json(found)
    elif found:
        now = SystemClock().now()
        rows = [[*_cells(each), age_text(each.seen_at, now)] for each in found]
        click.echo(render(COLUMNS, rows, columns()))
    elif rented:
        remark("No host is rented")
    else:
        remark("No host yet; the server registers those of its engine when it starts")


@command.command(help="One host with its cards.")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    with connected() as client:
        host = client.hosts.get(name)
    if as_json:
        write_json(host)
        return
    click.echo(emphasised(f"{host.name}: {_state(host)}"))
    write_facts(_facts(host))


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
        click.echo(f"{host.name}: {_state(host)}, region {host.region}")


def _fill_percent(host: "HostAnswer") -> int:
    return host.disk_used_bytes * 100 // host.disk_bytes if host.disk_bytes else 0


_LIMITS: Final = {
    "hold": "hold",
    "lost": "DO NOT HOLD: the kernel lost count of what each disk holds, and is counting anew",
    "off": "DO NOT HOLD: quotas are switched off in the pool",
}


def _state(host: "HostAnswer") -> str:
    return f"{host.state} {SIMULATED}" if host.simulated else host.state


def _cells(host: "HostAnswer") -> list[str]:
    kinds = Counter(gpu.gpu for gpu in host.gpus)
    return [
        host.name,
        _state(host),
        ", ".join(f"{count}× {name}" for name, count in kinds.items()),
        str(sum(gpu.free and gpu.healthy for gpu in host.gpus)) if host.gpus else "",
        f"{host.vcpus_held}/{host.vcpus}",
        f"{bytes_text(host.ram_bytes_held)}/{bytes_text(host.ram_bytes)}",
        f"{bytes_text(host.disk_bytes_held)}/{bytes_text(host.disk_bytes)}",
        f"{_fill_percent(host)} %",
        host.address,
        host.region,
        host.site,
    ]


def cost_text(host: "HostAnswer") -> str:
    if host.cost_micros_per_hour is None:
        return ""
    return f"{host.cost_micros_per_hour / 10**6:.6g} {host.cost_currency} an hour"


def _facts(host: "HostAnswer") -> Iterator[tuple[str, str]]:
    yield "id", host.id
    yield "site", host.site
    yield "kind", f"rented, {host.type}" if host.kind == "rented" else ""
    yield "region", host.zone or host.region
    yield "cost", cost_text(host)
    yield "provider's id", host.remote_id
    yield "address", host.address
    yield "vCPUs", f"{host.vcpus_held} of {host.vcpus} held"
    yield "memory", f"{bytes_text(host.ram_bytes_held)} of {bytes_text(host.ram_bytes)} held"
    yield "disk", f"{bytes_text(host.disk_bytes_held)} of {bytes_text(host.disk_bytes)} held"
    yield (
        "pool",
        f"{bytes_text(host.disk_used_bytes)} of {bytes_text(host.disk_bytes)} written, {_fill_percent(host)} %",
    )
    yield "disk limits", _LIMITS[host.disk_limits]
    yield "open networks", ", ".join(host.allow_out) or "none but the internet"
    for gpu in host.gpus:
        state = "free" if gpu.free else "held"
        health = "" if gpu.healthy else ", NOT HEALTHY"
        yield gpu.slot, f"{gpu.name}, {bytes_text(gpu.memory_bytes)}, {state}{health}"
    yield "seen", f"{age_text(host.seen_at, SystemClock().now())} ago"
