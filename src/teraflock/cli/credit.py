"""`tera credits`: list a project's credits, and give it some."""

from datetime import UTC, datetime
from typing import Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.money import amount_text
from teraflock.cli.connection import connected
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import tell
from teraflock.cli.parse_money import parse_amount
from teraflock.cli.table import write_list
from teraflock.words.credit import fields

HELP: Final = """List the credits of a project. Credits pay for usage first, in the order in which they expire.

\b
Examples:
  tera credits
  tera credits give 100 --reason sign-up --expires 2026-12-31
"""


@click.group(cls=NamingGroup, help=HELP, invoke_without_command=True)
@click.pass_context
@project_option
@json_option
def command(ctx: click.Context, project: str | None, as_json: bool) -> None:
    if ctx.invoked_subcommand is not None:
        return
    with connected(project) as client:
        found = client.credits.list()
    write_list(found, fields(found), as_json=as_json, empty="No credits")


@command.command(help="Give a project credit in its currency. For operators.")
@click.argument("amount")
@click.option(
    "--reason", default="gift", show_default=True, metavar="TEXT", help="Shown in the list of credits."
)
@click.option("--expires", metavar="DATE", help="The last day, UTC, such as `2026-12-31`. [default: never]")
@project_option
@json_option
def give(amount: str, reason: str, expires: str | None, project: str | None, as_json: bool) -> None:
    expires_at = _day(expires) if expires else None
    with connected(project) as client:
        made = client.credits.give(parse_amount(amount, at_least=1), reason, expires_at=expires_at)
    tell(made, f"Gave a credit of {amount_text(made.micros, made.currency)}", as_json)


def _day(text: str) -> datetime:
    """The end of the day, so that the credit still pays for its last day."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC, hour=23, minute=59, second=59)
    except ValueError:
        raise BadInput(f"`--expires {text}` is not a date", hint="Write it as `2026-12-31`") from None
