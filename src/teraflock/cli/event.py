"""`tera events`: show the events of a project, and stream new ones."""

import re
import sys
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import click
import msgspec

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput
from teraflock.cli.connection import connected, mark_simulated
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import write_output
from teraflock.cli.pages import all_of
from teraflock.cli.parse import parse_time
from teraflock.cli.table import write_list
from teraflock.words.event import FIELDS
from teraflock.words.table import cells

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.event import EventAnswer

LIMIT: Final = 50
LIMIT_MAX: Final = 100_000
PAGE: Final = 200
AGO: Final = re.compile(r"([0-9]{1,6})([smhd])")
SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
HELP: Final = """Show the events of a project, newest last.

\b
Examples:
  tera events
  tera events --instance web
  tera events --since 2h
  tera events --follow
  tera events --follow --json | jq .kind
  tera events --server
"""


@click.command(help=HELP)
@click.option("--instance", metavar="NAME", help="Only events of this instance.")
@click.option("--follow", "-f", is_flag=True, help="Stream new events until Ctrl-C.")
@click.option(
    "--since",
    metavar="WHEN",
    help="Events since `30m`, `2h` or `7d` ago, or since a time in UTC such as `2026-11-15T08:00`.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, LIMIT_MAX),
    help=f"Only the newest N. [default: {LIMIT}; all with --since]",
)
@click.option("--server", "of_server", is_flag=True, help="For operators: events of the server itself.")
@project_option
@json_option
def command(
    instance: str | None,
    follow: bool,
    since: str | None,
    limit: int | None,
    of_server: bool,
    project: str | None,
    as_json: bool,
) -> None:
    begin = parse_since(since, SystemClock().now()) if since is not None else None
    at_most = limit or (LIMIT_MAX if since is not None else LIMIT)
    if of_server and (follow or instance):
        raise BadInput(
            "`--server` cannot be combined with `--instance` or `--follow`", hint="Leave one of them out"
        )
    with connected(project) as client:
        if of_server:
            found = [
                each
                for each in all_of(client.operator.events, at_most=at_most)
                if not begin or each.at >= begin
            ]
            _write(found[::-1], as_json, False)
            return
        subject = client.instances.get(instance).id if instance else ""
        found = _newest(client, subject, begin, at_most)
        mark_simulated(client)
        _write(found, as_json, follow)
        if follow:
            with suppress(KeyboardInterrupt):  # how the user ends it
                _follow(client, found, subject, as_json)


def _newest(client: "Client", subject: str, begin: datetime | None, at_most: int) -> "list[EventAnswer]":
    """Read backwards from the newest event, no further than needed. Returns the oldest first."""
    found: list[EventAnswer] = []
    after: str | None = ""
    while after is not None and len(found) < at_most:
        limit = min(PAGE, at_most - len(found))
        page = (
            client.instances.events(subject, after=after, limit=limit, newest_first=True)
            if subject
            else client.events.page(after=after, limit=limit, newest_first=True)
        )
        fresh = [event for event in page.items if begin is None or event.at >= begin]
        found += fresh
        after = page.next if len(fresh) == len(page.items) else None
    return found[::-1]


def parse_since(text: str, now: datetime) -> datetime:
    """Parse `2h` ago, or a time. A time without a zone is in UTC."""
    if ago := AGO.fullmatch(text):
        return now - timedelta(seconds=int(ago[1]) * SECONDS[ago[2]])
    return parse_time(text, "--since", "Write `30m`, `2h` or `7d`, or a time such as `2026-11-15T08:00`")


def _follow(client: "Client", past: "list[EventAnswer]", subject: str, as_json: bool) -> None:
    """Leave out events that were shown. A stream resumes a little early so that it misses no late event."""
    known = {event.id for event in past}
    first = past[0].id if past else ""
    for event in client.events.follow(after=past[-1].id if past else ""):
        if event.id not in known and event.id > first and subject in ("", event.subject):
            _write_one(event, as_json)


def _write(events: "list[EventAnswer]", as_json: bool, follow: bool) -> None:
    if follow:
        for event in events:
            _write_one(event, as_json)
    else:
        write_list(events, FIELDS, as_json=as_json, empty="No events yet")


def _write_one(event: "EventAnswer", as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    else:
        write_output("  ".join(cells(FIELDS, event)).rstrip() + "\n")
    sys.stdout.flush()
