"""`tera audit`: who changed what."""

from typing import Final

import click

from teraflock.cli.cloud.connection import connected
from teraflock.cli.cloud.options import json_option, organisation_option
from teraflock.cli.cloud.pages import all_of, names_of
from teraflock.cli.cloud.words import details_text, time_text
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.table import Column, render

LIMIT: Final = 50
HELP: Final = """Who changed what in your organisation, and when, newest first.

Owners, members and viewers see it, as far as their projects reach. Acts of the operator stand in it with their reason.

\b
Examples:
  tera audit
  tera audit --limit 500 --json
"""
COLUMNS: Final = (
    Column("AT (UTC)"),
    Column("MEMBER", flexible=True, worth=7),
    Column("ACTION"),
    Column("SUBJECT", flexible=True, worth=8),
    Column("DETAILS", flexible=True, worth=5),
    Column("KEY", worth=3),
)


@click.command(help=HELP)
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=LIMIT, show_default=True, help="At most so many."
)
@organisation_option
@json_option
def command(limit: int, organisation: str, as_json: bool) -> None:
    with connected() as client:
        found = all_of(client.audit, at_most=limit, organisation=organisation)
        names = {} if as_json else names_of(lambda: client.all_members(organisation=organisation))
    if as_json:
        write_json(found)
        return
    if not found:
        remark("Nothing was changed yet")
        return
    rows = [
        [
            time_text(each.at),
            "operator" if each.details.get("by") == "operator" else names.get(each.member_id, each.member_id),
            each.action,
            each.subject,
            details_text(each.details),
            each.key_id,
        ]
        for each in found
    ]
    click.echo(render(COLUMNS, rows, columns()))
