"""`tera key`: API keys. The secret is shown once, when it is made; the server keeps a digest of it only."""

from typing import Final

import click

from teraflock.base.clock import SystemClock
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.member import ROLES
from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.pages import names_of
from teraflock.cli.table import write_list
from teraflock.wire.key import KeyRequest
from teraflock.wire.member import RoleWord
from teraflock.words.key import fields

HELP: Final = """API keys: for commands (`TERA_KEY`) and for programs.

A key may do what its member may; `--role-max`, `--only` and `--days` narrow that.

\b
Examples:
  tera key create laptop
  tera key create ci --only vision --role-max member --days 90
  export TERA_SERVER=http://127.0.0.1:8372 TERA_KEY=$(tera key create script --json | jq -r .secret)
  tera key revoke key_01j…
"""


@click.group(cls=NamingGroup, help=HELP)
def command() -> None:
    pass


@command.command("list", help="Your keys; an owner sees all of the organisation.")
@json_option
def list_keys(as_json: bool) -> None:
    with connected() as client:
        found = list(client.keys.list())
        members = {} if as_json else names_of(client.members.list)
        projects = {} if as_json else names_of(client.projects.list)
    write_list(found, fields(SystemClock().now(), members, projects), as_json=as_json)


@command.command(help="A new key; its secret is shown this once.")
@click.argument("name")
@click.option("--member", default="", metavar="NAME", help="For this member; owners only. [default: you]")
@click.option("--only", "project", default="", metavar="PROJECT", help="Reaches this project only.")
@click.option("--role-max", type=click.Choice(ROLES), help="May do no more than this role.")
@click.option(
    "--days", type=click.IntRange(1, 3650), metavar="N", help="Ends after so many. [default: never]"
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
    remark(f"The key `{made.key.name}` is made: {made.key.id}")
    show_secret(made.secret)


@command.command(help="Revoke a key: from now on it opens nothing.")
@click.argument("key_id", metavar="ID")
@yes_option
@json_option
def revoke(key_id: str, yes: bool, as_json: bool) -> None:
    if not yes:
        confirm(f"Revoke the key `{key_id}`? Whatever uses it stops working.", "Revoking")
    with connected() as client:
        revoked = client.keys.revoke(key_id)
    if as_json:
        write_json(revoked)
    else:
        remark(f"The key `{revoked.name}` is revoked")


def show_secret(secret: str) -> None:
    """On stdout alone, so that it can be piped to where it is kept."""
    remark("It is shown this once; set it as TERA_KEY where it is used:")
    click.echo(secret)
