"""`tera org`: manage organisations, for operators."""

from typing import Final

import click

from teraflock.base.names import check_member_name, check_name
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected
from teraflock.cli.facts import write_facts
from teraflock.cli.key import show_secret
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import checked_reason, json_option, wait_option, yes_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.table import write_list
from teraflock.cli.waiting import wait as wait_until
from teraflock.wire.organisation import (
    OrganisationRename,
    OrganisationRequest,
    OrganisationStateChange,
)
from teraflock.words.organisation import FIELDS
from teraflock.words.text import time_text

HELP: Final = """Create, suspend, rename and delete organisations. For operators.

Organisations see nothing of each other. The instances of a suspended organisation are stopped. Its members can read and
delete, but cannot start instances or create keys. After `resume`, members start their instances themselves. `delete`
keeps bills and the audit log.

\b
Examples:
  tera org create vision-lab --owner owner@example.org
  tera org list
  tera org suspend vision-lab --reason "unpaid since March"
  tera org resume vision-lab --reason "paid"
  tera org rename vision-lab --to vision --reason "new name"
  tera org delete vision-lab --reason "contract ended" --force
"""
REASON = click.option(
    "--reason", required=True, callback=checked_reason, metavar="TEXT", help="The reason. Members see it."
)
command = NamingGroup("command", help=HELP)


@command.command("list", help="List all organisations.")
@json_option
def list_organisations(as_json: bool) -> None:
    with connected() as client:
        found = client.organisations.list()
    write_list(found, FIELDS, as_json=as_json)


@command.command(help="Create an organisation with its owner. The owner's key is shown only once.")
@click.argument("name")
@click.option(
    "--owner", required=True, metavar="NAME", help="The name of its owner, such as an e-mail address."
)
@json_option
def create(name: str, owner: str, as_json: bool) -> None:
    request = OrganisationRequest(name=check_name(name, "an organisation"), owner=check_member_name(owner))
    with connected() as client:
        made = client.organisations.create(request)
    if as_json:
        write_json(made)
        return
    remark(f"Created organisation `{made.organisation.name}` with owner {owner}")
    show_secret(made.key)


@command.command(help="Show one organisation, by name or id.")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    with connected() as client:
        found = client.organisations.get(name)
        projects = [] if found.state == "deleted" else client.projects.list(organisation=found.id)
    if as_json:
        write_json(found)
        return
    click.echo(f"{found.name}: {found.state}")
    since = f"{time_text(found.state_since)} UTC" if found.state_since and found.state_reason else ""
    facts = [
        ("reason", found.state_reason),
        ("since", since),
        ("id", found.id),
        ("created", f"{time_text(found.created_at)} UTC"),
        ("projects", ", ".join(each.name for each in projects)),
    ]
    write_facts(facts)


@command.command(help="Suspend an organisation: stop its instances and let none start.")
@click.argument("name")
@REASON
@json_option
def suspend(name: str, reason: str, as_json: bool) -> None:
    with connected() as client:
        changed = client.organisations.set_state(
            name, OrganisationStateChange(state="suspended", reason=reason)
        )
    tell(changed, f"Suspended `{changed.name}`. Its instances are being stopped", as_json)


@command.command(help="Lift a suspension: members can start instances again.")
@click.argument("name")
@REASON
@json_option
def resume(name: str, reason: str, as_json: bool) -> None:
    with connected() as client:
        changed = client.organisations.set_state(name, OrganisationStateChange(state="active", reason=reason))
    tell(changed, f"Resumed `{changed.name}`. Its members can start their instances", as_json)


@command.command(help="Rename an organisation. Its id stays the same.")
@click.argument("name")
@click.option("--to", "new_name", required=True, metavar="NAME", help="The new name.")
@REASON
@json_option
def rename(name: str, new_name: str, reason: str, as_json: bool) -> None:
    change = OrganisationRename(name=check_name(new_name, "an organisation"), reason=reason)
    with connected() as client:
        changed = client.organisations.rename(name, change)
    tell(changed, f"Renamed `{name}` to `{changed.name}`", as_json)


@command.command(help="Delete an organisation. Its bills and its audit log are kept.")
@click.argument("name")
@REASON
@click.option("--force", is_flag=True, help="Delete its instances and images first, with all data on them.")
@yes_option
@wait_option(default=True)
@json_option
def delete(name: str, reason: str, force: bool, yes: bool, wait: bool, timeout: float, as_json: bool) -> None:
    with connected() as client:
        found = client.organisations.get(name)
        if not yes:
            lost = " with all its instances, disks and images" if force else ""
            confirm(f"Delete the organisation `{found.name}`{lost}?", "Deleting")
        changed = client.organisations.delete(found.id, reason, force=force)
        if wait:
            changed = wait_until(
                lambda: client.organisations.get(found.id),
                lambda seen: seen.state == "deleted",
                lambda seen: f"{found.name}: {seen.state}",
                seconds_max=timeout,
            )
    state = "deleted" if changed.state == "deleted" else "being deleted"
    tell(changed, f"`{found.name}` is {state}", as_json)
