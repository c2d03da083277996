"""`tera announce`: publish, list and remove announcements."""

from datetime import datetime, timedelta
from typing import Final

import click

from teraflock.base.clock import SystemClock
from teraflock.cli.connection import connected
from teraflock.cli.event import AGO, SECONDS
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option
from teraflock.cli.output import tell
from teraflock.cli.pages import names_of
from teraflock.cli.parse import parse_time
from teraflock.cli.table import write_list
from teraflock.wire.announcement import AnnouncementRequest
from teraflock.words.announcement import fields

HELP: Final = """Publish an announcement to all tenants or to one organisation. For operators.

Each user sees an announcement once, after the output of their next command.

\b
Examples:
  tera announce "Maintenance on Sunday from 08:00 UTC" --until 7d
  tera announce "Your quota was raised" --org red-lab
  tera announce list
  tera announce remove ann_01j…
"""


class _Announce(NamingGroup):
    """Takes several words as the text itself. One word is more likely a mistyped command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-") and " " in args[0]:
            return "add", self.commands["add"], args
        return super().resolve_command(ctx, args)


@click.group(cls=_Announce, help=HELP, subcommand_metavar="TEXT | COMMAND [ARGS]...")
def command() -> None:
    pass


@command.command(help="Publish TEXT. You can leave out `add` if TEXT has several words.")
@click.argument("text")
@click.option("--org", "organisation", default="", metavar="NAME", help="Only for this organisation.")
@click.option(
    "--until",
    metavar="TIME",
    help="When it ends: `2h` or `7d` from now, or a time in UTC such as `2026-11-20T08:00`.",
)
@json_option
def add(text: str, organisation: str, until: str | None, as_json: bool) -> None:
    end = parse_until(until, SystemClock().now()) if until is not None else None
    with connected() as client:
        made = client.announcements.create(
            AnnouncementRequest(text=text, organisation=organisation, until=end)
        )
    tell(made, f"Announced to {organisation or 'all organisations'}: {made.id}", as_json)


@command.command("list", help="List current announcements.")
@json_option
def list_announcements(as_json: bool) -> None:
    with connected() as client:
        found = client.announcements.list()
        names = {} if as_json else names_of(client.organisations.list)
    write_list(found, fields(names), as_json=as_json, empty="No announcements")


@command.command(help="Remove an announcement.")
@click.argument("id")
@json_option
def remove(id: str, as_json: bool) -> None:
    with connected() as client:
        client.announcements.remove(id)
    tell({"removed": id}, f"Removed {id}", as_json)


def parse_until(text: str, now: datetime) -> datetime:
    """Parse `2h` from now, or a time. A time without a zone is in UTC."""
    if ahead := AGO.fullmatch(text):
        return now + timedelta(seconds=int(ahead[1]) * SECONDS[ahead[2]])
    return parse_time(text, "--until", "Write `2h` or `7d`, or a time such as `2026-11-20T08:00`")
