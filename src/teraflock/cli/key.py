"""`tera key`: list, create and revoke API keys. A secret is shown once; the server stores only its digest."""

from typing import Final

import click

from teraflock.base.clock import SystemClock
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.member import ROLES
from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.pages import names_of
from teraflock.cli.table import write_list
from teraflock.wire.key import KeyRequest
from teraflock.wire.member import RoleWord
from teraflock.words.key import fields

HELP: Final = """List, create and revoke API keys, for `tera` (`TERA_KEY`) and for your programs.

A key has the permissions of its member. `--role-max`, `--only` and `--days` limit them.

\b
Examples:
  tera key create laptop
  tera key create ci --only vision --role-max member --days 90
  export TERA_SERVER=http://127.0.0.1:8372
  export TERA_KEY=$(tera key create script --json | jq -r .secret)
  tera key revoke key_01j…
"""
command = NamingGroup("command", help=HELP)


@command.command("list", help="List your keys. Owners see all keys of the organisation.")
@json_option
def list_keys(as_json: bool) -> None:
    with connected() as client:
        found = list(client.keys.list())
        members = {} if as_json else names_of(client.members.list)
        projects = {} if as_json else names_of(client.projects.list)
    write_list(found, fields(SystemClock().now(), members, projects), as_json=as_json)


@command.command(help="Create a key. Its secret is shown only once.")
@click.argument("name")
@click.option("--member", default="", metavar="NAME", help="For owners: the member it is for. [default: you]")
@click.option("--only", "project", default="", metavar="PROJECT", help="Limit it to this project.")
@click.option("--role-max", type=click.Choice(ROLES), help="Limit it to this role.")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    metavar="N",
    help="Let it expire after this many days. [default: never]",
)
@json_option
def create(
    name: str, member: str, project: str, role_max: RoleWord | None, days: int | None, as_json: bool
) -> None:
    request = KeyRequest(name=name, member=member, project=project, role_max=role_max, days=days)
    with connected() as client:
        made = client.keys.create(request)
    if as_json:
        write_json(made)
        return
    remark(f"Created key `{made.key.name}`: {made.key.id}")
    show_secret(made.secret)


@command.command(help="Revoke a key. It stops working at once.")
@click.argument("key_id", metavar="ID")
@yes_option
@json_option
def revoke(key_id: str, yes: bool, as_json: bool) -> None:
    if not yes:
        confirm(f"Revoke the key `{key_id}`? Everything that uses it stops working.", "Revoking")
    with connected() as client:
        revoked = client.keys.revoke(key_id)
    tell(revoked, f"Revoked key `{revoked.name}`", as_json)


def show_secret(secret: str) -> None:
    """Print a secret alone on stdout, so that it can be piped."""
    remark("The secret is shown only once. Set it as TERA_KEY where you use it:")
    click.echo(secret)
