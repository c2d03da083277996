"""`tera site`: the engines and cloud accounts of the server."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.quantities import bytes_text
from teraflock.cli.connection import connected
from teraflock.cli.instance.show import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import columns, emphasised, remark, write_json
from teraflock.cli.table import Column, render
from teraflock.cli.words import SIMULATED, age_text, parse_pairs
from teraflock.wire.site import SiteRequest

if TYPE_CHECKING:
    from teraflock.wire.site import MachineTypeAnswer, SiteAnswer

HELP: Final = """List, check and add sites: the engines and cloud accounts where instances run. For operators.

A site has hosts of our own, on which the server places instances, or it rents a machine for each instance. Tenants may
rent machines only where you allow it: `tera site allow`.

The setting `engine` makes the first site. More come from the setting `sites` (docs/settings.md) or `tera site add`.

\b
Examples:
  tera site list
  tera site check sky
  tera site add sky --kind simulated --set style=cloud
  tera site allow sky --org red-lab
  tera launch --site sky --type sim-1xv100
"""
COLUMNS: Final = (
    Column("SITE", flexible=True),
    Column("KIND"),
    Column("STATE"),
    Column("HOSTS", right=True, worth=4),
    Column("INSTANCES", right=True, worth=4),
    Column("USED BY", worth=5),
    Column("PROBLEM", flexible=True, worth=6),
)
TYPE_COLUMNS: Final = (
    Column("TYPE", flexible=True),
    Column("REGION"),
    Column("GPUS"),
    Column("VCPUS", right=True, worth=4),
    Column("RAM", right=True, worth=4),
    Column("DISK", right=True, worth=3),
    Column("COST PER HOUR"),
)


@click.group(cls=NamingGroup, help=HELP)
def command() -> None:
    pass


@command.command("list", help="List all sites and whether they answer.")
@json_option
def list_sites(as_json: bool) -> None:
    with connected() as client:
        found = client.sites.list()
    if as_json:
        write_json(found)
    elif found:
        click.echo(render(COLUMNS, [_cells(each) for each in found], columns()))
    else:
        remark("No site is set up; see `tera site add --help`")


@command.command(help="Show one site: its state, what it supports, and what can be rented there.")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    with connected() as client:
        site = client.sites.get(name)
    if as_json:
        write_json(site)
        return
    click.echo(emphasised(f"{site.name}: {_state(site)}"))
    write_facts(_facts(site))
    if site.types:
        click.echo("")
        click.echo(render(TYPE_COLUMNS, [_type_cells(each) for each in site.types], columns()))


@command.command(help="Ask a site what it has. Changes nothing there. Exit code 1 if it does not answer.")
@click.argument("name")
@json_option
def check(name: str, as_json: bool) -> None:
    with connected() as client:
        found = client.sites.check(name)
    if as_json:
        write_json(found)
    elif found.ok:
        click.echo(f"{name}: ok, {found.hosts} hosts, {found.machines} machines of ours, {found.types} types")
    else:
        click.echo(f"{name}: {found.problem}")
        if found.hint:
            remark(found.hint)
    if not found.ok:
        raise SystemExit(1)


@command.command(help="Define a site. Secrets are only named: `--set key=env:VARIABLE` or `key=file:PATH`.")
@click.argument("name")
@click.option("--kind", required=True, metavar="KIND", help="The driver, such as `simulated` or `lxd`.")
@click.option(
    "--set", "options", multiple=True, metavar="K=V", help="An option of the driver; may be repeated."
)
@json_option
def add(name: str, kind: str, options: tuple[str, ...], as_json: bool) -> None:
    with connected() as client:
        made = client.sites.add(SiteRequest(name=name, kind=kind, options=parse_pairs(options, "--set")))
    if as_json:
        write_json(made)
    else:
        remark(f"Added `{made.name}`. `tera site check {made.name}` says in a moment whether it answers")


@command.command(help="Remove a site that was added and has no instances.")
@click.argument("name")
@yes_option
@json_option
def remove(name: str, yes: bool, as_json: bool) -> None:
    from teraflock.cli.confirm import confirm

    if not yes:
        confirm(f"Remove the site `{name}`?", f"Removing the site `{name}`")
    with connected() as client:
        client.sites.remove(name)
    if as_json:
        write_json({"removed": name})
    else:
        remark(f"Removed `{name}`")


@command.command(help="Let an organisation rent machines at a site. This spends your money there.")
@click.argument("name")
@click.option("--org", "organisation", required=True, metavar="NAME", help="The organisation's name or id.")
@click.option("--remove", is_flag=True, help="Stop that. Instances that are there keep running.")
@json_option
def allow(name: str, organisation: str, remove: bool, as_json: bool) -> None:
    with connected() as client:
        site = client.sites.allow(name, organisation, may=not remove)
    if as_json:
        write_json(site)
    else:
        remark(f"`{organisation}` may {'no longer ' if remove else ''}rent machines at `{name}`")


def _state(site: "SiteAnswer") -> str:
    return f"{site.state} {SIMULATED}" if site.simulated else site.state


def _used_by(site: "SiteAnswer") -> str:
    if not site.rents or site.open:
        return "all"
    count = len(site.organisations)
    return f"{count} organisation{'s' if count > 1 else ''}" if count else "nobody"


def _cells(site: "SiteAnswer") -> list[str]:
    counts = [str(site.hosts), str(site.instances)]
    return [site.name, site.kind, _state(site), *counts, _used_by(site), site.problem]


def _facts(site: "SiteAnswer") -> Iterator[tuple[str, str]]:
    yield "problem", site.problem
    yield "since", f"{age_text(site.since, SystemClock().now())} ago" if site.since else ""
    yield "kind", site.kind
    yield "defined in", site.defined_in
    yield "machines", "rented, one for each instance" if site.rents else "hosts of our own"
    yield "supports", ", ".join(site.capabilities)
    yield "hosts", str(site.hosts)
    yield "instances", str(site.instances)
    yield "used by", ", ".join(site.organisations) or _used_by(site)
    yield "options", ", ".join(f"{name}={value}" for name, value in site.options.items() if value)


def _type_cells(each: "MachineTypeAnswer") -> list[str]:
    prices = each.prices_micros_per_hour.items()
    return [
        each.name,
        each.region,
        f"{each.gpus}× {each.gpu}" if each.gpus else "",
        str(each.vcpus),
        bytes_text(each.ram_bytes),
        bytes_text(each.disk_bytes),
        ", ".join(f"{micros / 10**6:.6g} {each.currency} {mode}" for mode, micros in prices),
    ]
