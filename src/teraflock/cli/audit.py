"""`tera audit`: show who changed what."""

from typing import Final

import click

from teraflock.cli.connection import connected
from teraflock.cli.options import json_option, organisation_option
from teraflock.cli.pages import all_of
from teraflock.cli.table import write_list
from teraflock.words.audit import FIELDS

LIMIT: Final = 50
HELP: Final = """Show who changed what in your organisation and when, newest first.

Owners, members and viewers see the entries of their projects. Actions of the operator are listed with their reason.
Commands run in instances are listed with the name of the program, without its arguments.

\b
Examples:
  tera audit
  tera audit --limit 500 --json
"""


@click.command(help=HELP)
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=LIMIT,
    show_default=True,
    help="The most entries to show.",
)
@organisation_option
@json_option
def command(limit: int, organisation: str, as_json: bool) -> None:
    with connected() as client:
        found = all_of(client.audit.page, at_most=limit, organisation=organisation)
    write_list(found, FIELDS, as_json=as_json, empty="No changes yet")
