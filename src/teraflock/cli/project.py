"""`tera project`: list, create and delete projects."""

from typing import Final

import click

from teraflock.base.names import check_name
from teraflock.cli.connection import connected
from teraflock.cli.deletion import delete_named
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, organisation_option, yes_option
from teraflock.cli.output import tell
from teraflock.cli.quota import limit_options, limits_from
from teraflock.cli.table import write_list
from teraflock.wire.project import ProjectRequest
from teraflock.wire.quota import QuotaRequest
from teraflock.words.project import FIELDS

HELP: Final = """List, create and delete projects. Each has its own instances, private network and quota.

The quota of your organisation limits the number of projects and what they use together.

\b
Examples:
  tera project create vision
  tera project list
  tera ps --project vision
  tera project create vision --org red-lab --instances 20   # for operators
"""
command = NamingGroup("command", help=HELP)


@command.command("list", help="List the projects you have access to.")
@organisation_option
@json_option
def list_projects(organisation: str, as_json: bool) -> None:
    with connected() as client:
        found = list(client.projects.list(organisation=organisation))
    write_list(found, FIELDS, as_json=as_json)


@command.command(
    help="Create a project. For owners of the organisation. Limits that you leave out get the default for new projects."
    " No limit can exceed the quota of the organisation. The project gets a network with its first instance."
)
@click.argument("name")
@limit_options
@organisation_option
@json_option
def create(name: str, organisation: str, as_json: bool, **words: object) -> None:
    request = ProjectRequest(name=check_name(name, "a project"), quota=limits_from(words, QuotaRequest()))
    with connected() as client:
        made = client.projects.create(request, organisation=organisation)
    tell(
        made,
        f"Created project `{made.name}`. See its quota with `tera quota show --project {made.name}`",
        as_json,
    )


@command.command(help="Delete a project that has no instances.")
@click.argument("name")
@yes_option
@json_option
def delete(name: str, yes: bool, as_json: bool) -> None:
    with connected() as client:
        delete_named(client.projects, name, "project", yes=yes, as_json=as_json)
