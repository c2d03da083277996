"""`tera credits`: what was given to a project, and what is left of it."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.money import decimals_for
from teraflock.cli.connection import connected
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.money_words import amount_text, parse_amount
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.table import Column, render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from teraflock.wire.credit import CreditAnswer

HELP: Final = """Credits of a project: drawn before anything else, the next to expire first.

\b
Examples:
  tera credits
  tera credits give 100 --reason sign-up --expires 2026-12-31
"""
COLUMNS: Final = (
    Column("LEFT", right=True),
    Column("OF", right=True),
    Column("REASON", flexible=True),
    Column("LAST DAY (UTC)"),
)


@click.group(cls=NamingGroup, help=HELP, invoke_without_command=True)
@click.pass_context
@project_option
@json_option
def command(ctx: click.Context, project: str | None, as_json: bool) -> None:
    if ctx.invoked_subcommand is not None:
        return
    with connected(project) as client:
        found = client.credits.list()
    if as_json:
        write_json(found)
    elif found:
        click.echo(render(COLUMNS, [_cells(each, _decimals(found)) for each in found], columns()))
    else:
        remark("No credits")


@command.command(help="Give a project credit, in its currency. For operators.")
@click.argument("amount")
@click.option("--reason", default="gift", show_default=True, metavar="TEXT")
@click.option("--expires", metavar="DATE", help="Its last day, UTC: `2026-12-31`; left out: never.")
@project_option
@json_option
def give(amount: str, reason: str, expires: str | None, project: str | None, as_json: bool) -> None:
    expires_at = _day(expires) if expires else None
    with connected(project) as client:
        made = client.credits.give(parse_amount(amount, at_least=1), reason, expires_at=expires_at)
    if as_json:
        write_json(made)
    else:
        remark(f"Given: {amount_text(made.micros, made.currency)}")


def _day(text: str) -> datetime:
    """The end of the day: a credit of which that is the last day still pays for it."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC, hour=23, minute=59, second=59)
    except ValueError:
        raise BadInput(f"`--expires {text}` is no date", hint="Such as `2026-12-31`") from None


def _decimals(found: "Sequence[CreditAnswer]") -> int:
    return decimals_for(micros for each in found for micros in (each.left_micros, each.micros))


def _cells(credit: "CreditAnswer", decimals: int) -> list[str]:
    expires = f"{credit.expires_at - timedelta(seconds=1):%Y-%m-%d}" if credit.expires_at else "never expires"
    return [
        amount_text(credit.left_micros, credit.currency, decimals),
        amount_text(credit.micros, credit.currency, decimals),
        credit.reason,
        "expired" if credit.is_expired else expires,
    ]
