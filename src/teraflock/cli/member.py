"""`tera member`: list, add and remove members, and set their roles."""

from typing import Final

import click

from teraflock.base.names import check_member_name
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, organisation_option, yes_option
from teraflock.cli.output import tell
from teraflock.cli.pages import names_of
from teraflock.cli.table import write_list
from teraflock.wire.member import MemberRequest, RoleChange, RoleWord
from teraflock.words.member import fields, member_roles_text

ROLES: Final = ("owner", "member", "viewer", "billing")
HELP: Final = """List, add and remove members of your organisation, and set their roles.

An `owner` can do everything in the organisation. A `member` launches and deletes instances. A `viewer` only reads.
`billing` sees usage and bills. A role applies to one project (`--in`) or to all of them.

\b
Examples:
  tera member add someone@example.org --role member --in vision
  tera member role someone@example.org viewer --in speech
  tera key create laptop --member someone@example.org
  tera member remove someone@example.org
"""
command = NamingGroup("command", help=HELP)


@command.command("list", help="List the members of your organisation.")
@organisation_option
@json_option
def list_members(organisation: str, as_json: bool) -> None:
    with connected() as client:
        found = list(client.members.list(organisation=organisation))
        names = {} if as_json else names_of(lambda: client.projects.list(organisation=organisation))
    write_list(found, fields(names), as_json=as_json)


@command.command(help="Add a member. Then create a key with `tera key create NAME --member MEMBER`.")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the member may do.")
@click.option(
    "--in", "project", default="", metavar="PROJECT", help="Only in this project. [default: all projects]"
)
@organisation_option
@json_option
def add(name: str, role: RoleWord, project: str, organisation: str, as_json: bool) -> None:
    check_member_name(name)
    with connected() as client:
        made = client.members.add(
            MemberRequest(name=name, role=role, project=project), organisation=organisation
        )
        names = {} if as_json else names_of(lambda: client.projects.list(organisation=organisation))
    tell(
        made,
        f"{made.name} is {member_roles_text(made, names)}."
        f" Create a key with `tera key create NAME --member {made.name}`",
        as_json,
    )


@command.command(help="Set the role of a member. `none` removes it.")
@click.argument("name")
@click.argument("role", type=click.Choice((*ROLES, "none")))
@click.option(
    "--in", "project", default="", metavar="PROJECT", help="Only in this project. [default: all projects]"
)
@json_option
def role(name: str, role: RoleWord, project: str, as_json: bool) -> None:
    change = RoleChange(role=None if role not in ROLES else role, project=project)
    with connected() as client:
        changed = client.members.set_role(name, change)
        names = {} if as_json else names_of(client.projects.list)
    tell(changed, f"{changed.name} is {member_roles_text(changed, names)}", as_json)


@command.command(help="Remove a member. Their keys stop working at once. Their instances stay.")
@click.argument("name")
@yes_option
@json_option
def remove(name: str, yes: bool, as_json: bool) -> None:
    if not yes:
        confirm(f"Remove the member `{name}`? Their keys stop working at once.", "Removing")
    with connected() as client:
        client.members.remove(name)
    tell({"removed": name}, f"Removed member {name}", as_json)
