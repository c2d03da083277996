"""`tera org`: organisations, for whoever runs the house."""

from typing import Final

import click

from teraflock.cli.cloud.connection import connected
from teraflock.cli.cloud.keys import show_secret
from teraflock.cli.cloud.options import json_option
from teraflock.cli.cloud.pages import all_of
from teraflock.cli.cloud.words import check_name, time_text
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.table import Column, render
from teraflock.wire.tenant import OrganisationRequest

HELP: Final = """Organisations: they see nothing of each other. For operators.

\b
Examples:
  tera org create vision-lab --owner owner@example.org
  tera org list
"""
COLUMNS: Final = (Column("ORGANISATION"), Column("ID", worth=6), Column("MADE AT (UTC)", worth=5))


@click.group(cls=NamingGroup, help=HELP)
def command() -> None:
    pass


@command.command("list", help="All organisations.")
@json_option
def list_organisations(as_json: bool) -> None:
    with connected() as client:
        found = all_of(client.organisations)
    if as_json:
        write_json(found)
        return
    rows = [[each.name, each.id, time_text(each.created_at)] for each in found]
    click.echo(render(COLUMNS, rows, columns()))


@command.command(help="A new organisation with its first member, whose key is shown this once.")
@click.argument("name")
@click.option("--owner", required=True, metavar="NAME", help="Its first member, such as an e-mail address.")
@json_option
def create(name: str, owner: str, as_json: bool) -> None:
    request = OrganisationRequest(name=check_name(name, "name of an organisation"), owner=owner)
    with connected() as client:
        made = client.make_organisation(request)
    if as_json:
        write_json(made)
        return
    remark(f"The organisation `{made.organisation.name}` is made; its owner is {owner}")
    show_secret(made.key)
