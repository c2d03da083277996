"""`tera audit`: who changed what."""

from typing import Final

import click

from teraflock.cli.connection import connected
from teraflock.cli.options import json_option, organisation_option
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.pages import all_of
from teraflock.cli.table import Column, render
from teraflock.cli.words import details_text, time_text

LIMIT: Final = 50
SHOWN: Final = ("name", "member")  # in columns of their own
HELP: Final = """Show who changed what in your organisation, and when, newest first.

Owners, members and viewers see it, as far as their projects reach. Acts of the operator are here with their reason.
Commands run in instances are here with their program, but not with its arguments.

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
        found = all_of(client.audit.page, at_most=limit, organisation=organisation)
    if as_json:
        write_json(found)
        return
    if not found:
        remark("Nothing was changed yet")
        return
    rows = [
        [
            time_text(each.at),
            each.member or each.member_id,
            each.action,
            str(each.details.get("name") or each.subject),
            details_text({name: value for name, value in each.details.items() if name not in SHOWN}),
            each.key_id,
        ]
        for each in found
    ]
    click.echo(render(COLUMNS, rows, columns()))
