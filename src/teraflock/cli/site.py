"""`tera site`: the engines and cloud accounts of the server."""

from typing import Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.names import check_place
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected
from teraflock.cli.facts import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import emphasised, remark, tell, write_json
from teraflock.cli.parse import parse_pairs
from teraflock.cli.table import write_list, write_table
from teraflock.wire.site import SiteRequest
from teraflock.words.site import FIELDS, TYPE_FIELDS, facts, state_text

HELP: Final = """List, check and add sites: the engines and cloud accounts where instances run. For operators.

A site has hosts of its own, on which the server places instances, or it rents a machine for each instance. Tenants may
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
command = NamingGroup("command", help=HELP)


@command.command("list", help="List all sites and whether they answer.")
@json_option
def list_sites(as_json: bool) -> None:
    with connected() as client:
        found = client.sites.list()
    empty = "No site is set up; see `tera site add --help`"
    write_list(found, FIELDS, as_json=as_json, empty=empty)


@command.command(help="Show one site: its state, what it supports, and what can be rented there.")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    with connected() as client:
        site = client.sites.get(name)
    if as_json:
        write_json(site)
        return
    click.echo(emphasised(f"{site.name}: {state_text(site)}"))
    write_facts(facts(site, SystemClock().now()))
    if site.types:
        click.echo("")
        write_table(TYPE_FIELDS, site.types)


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
        made = client.sites.add(
            SiteRequest(name=check_place(name, "a site"), kind=kind, options=parse_pairs(options, "--set"))
        )
    tell(
        made,
        f"Added `{made.name}`. In a moment, `tera site check {made.name}` tells you whether it answers",
        as_json,
    )


@command.command(help="Remove a site that was added and has no instances.")
@click.argument("name")
@yes_option
@json_option
def remove(name: str, yes: bool, as_json: bool) -> None:
    if not yes:
        confirm(f"Remove the site `{name}`?", f"Removing the site `{name}`")
    with connected() as client:
        client.sites.remove(name)
    tell({"removed": name}, f"Removed `{name}`", as_json)


@command.command(help="Let an organisation rent machines at a site. This spends your money there.")
@click.argument("name")
@click.option("--org", "organisation", required=True, metavar="NAME", help="The organisation's name or id.")
@click.option("--remove", is_flag=True, help="Withdraw the permission. Running instances stay.")
@json_option
def allow(name: str, organisation: str, remove: bool, as_json: bool) -> None:
    with connected() as client:
        site = client.sites.allow(name, organisation, may=not remove)
    tell(site, f"`{organisation}` may {'no longer ' if remove else ''}rent machines at `{name}`", as_json)
