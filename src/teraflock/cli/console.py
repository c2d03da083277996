"""`tera console`: sign in to the web console, invite members, and end sessions."""

from typing import Final

import click

from teraflock.base.clock import SystemClock
from teraflock.cli.connection import connected
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.pages import names_of
from teraflock.cli.table import write_list
from teraflock.wire.console import ConsoleLinkRequest
from teraflock.words.console import fields
from teraflock.words.text import time_text

HELP: Final = """Sign in to the web console, invite members, and end sessions.

The console runs on the server itself, below `/console`. A link works once: open it in a browser to sign in. A session
has the limits of the key that created the link.

\b
Examples:
  tera console link
  tera console link --member ann@lab.example
  tera console sessions
  tera console revoke ses_01j…
"""
command = NamingGroup("command", help=HELP)


@command.command(
    help="Print a link that signs in once. It is valid for 15 minutes, or 7 days for another member."
)
@click.option("--member", default="", metavar="NAME", help="For owners: invite this member. [default: you]")
@json_option
def link(member: str, as_json: bool) -> None:
    with connected() as client:
        made = client.console.make_link(ConsoleLinkRequest(member=member))
        server = client.transport.server
    if as_json:
        write_json({"url": server + made.path, "expires_at": made.expires_at, "member_id": made.member_id})
        return
    click.echo(server + made.path)
    remark(f"It works once, until {time_text(made.expires_at)} UTC")


@command.command(help="List your open sessions. Owners see all sessions of the organisation.")
@json_option
def sessions(as_json: bool) -> None:
    with connected() as client:
        found = list(client.console.list())
        members = {} if as_json else names_of(client.members.list)
    write_list(found, fields(SystemClock().now(), members), as_json=as_json, empty="No open sessions")


@command.command(help="End a session. Its next request is refused.")
@click.argument("session")
@json_option
def revoke(session: str, as_json: bool) -> None:
    with connected() as client:
        ended = client.console.revoke(session)
    tell(ended, f"Ended {ended.id}", as_json)
