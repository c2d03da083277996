"""`tera events`: what happened in a project, and what happens as it does."""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import BadInput
from teraflock.cli.cloud.connection import connected, mark_simulated
from teraflock.cli.cloud.options import json_option, project_option
from teraflock.cli.cloud.words import details_text, time_text
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.table import Column, render

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.event import EventAnswer

LIMIT: Final = 50
IDS_KEPT: Final = 10_000
LEFT_OUT: Final = frozenset({"sequence", "generation", "asked_at_us", "labels", "member", "host"})
HELP: Final = """What happened in a project, newest last.

\b
Examples:
  tera events
  tera events --instance web
  tera events --follow
  tera events --follow --json | jq .kind
"""
COLUMNS: Final = (
    Column("AT (UTC)"),
    Column("KIND"),
    Column("SUBJECT", flexible=True, worth=8),
    Column("DETAILS", flexible=True, worth=7),
)


@click.command(help=HELP)
@click.option("--instance", metavar="NAME", help="Of this instance only.")
@click.option("--follow", "-f", is_flag=True, help="Go on as more happens; Ctrl-C ends it.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=LIMIT, show_default=True, help="The last so many."
)
@project_option
@json_option
def command(instance: str | None, follow: bool, limit: int, project: str | None, as_json: bool) -> None:
    if follow and instance:
        raise BadInput("`--follow` follows the whole project", hint="Leave `--instance` out")
    with connected(project) as client:
        past = list(deque(_events(client, instance), max(limit, IDS_KEPT)))
        found = past[-limit:]
        mark_simulated(client)
        _write(found, as_json, follow)
        if follow:
            with suppress(KeyboardInterrupt):  # the way out
                _follow(client, past, as_json)


def _events(client: "Client", instance: str | None) -> "Iterator[EventAnswer]":
    after: str | None = ""
    while after is not None:
        page = client.instance_events(instance, after=after) if instance else client.event_page(after=after)
        yield from page.items
        after = page.next


def _follow(client: "Client", past: "list[EventAnswer]", as_json: bool) -> None:
    """A stream begins a little before where it was left, lest one that came late be missed: known ones are left out."""
    known = {event.id for event in past}
    for event in client.events(after=past[-1].id if past else ""):
        if event.id not in known:
            _write_one(event, as_json)


def _write(events: "list[EventAnswer]", as_json: bool, follow: bool) -> None:
    if follow:
        for event in events:
            _write_one(event, as_json)
    elif as_json:
        write_json(events)
    elif events:
        click.echo(render(COLUMNS, [_cells(each) for each in events], columns()))
    else:
        remark("Nothing has happened yet")


def _write_one(event: "EventAnswer", as_json: bool) -> None:
    import msgspec

    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    else:
        click.echo("  ".join(_cells(event)).rstrip())
    sys.stdout.flush()


def _cells(event: "EventAnswer") -> list[str]:
    """For people: who it is about by name, where it went; `--json` has all of it."""
    details = dict(event.details)
    name = details.pop("name", None) or event.subject
    before, after = details.pop("from", None), details.pop("to", None)
    way = [f"{before or 'nothing'} → {after}"] if after and after != before else []
    told = {
        key: value
        for key, value in details.items()
        if key not in LEFT_OUT and value not in ("", 0, "{}", None)
    }
    return [time_text(event.at), event.kind, str(name), "  ".join([*way, details_text(told)]).strip()]
