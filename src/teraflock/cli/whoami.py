"""`tera whoami`: show whose API key is in use."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import click

from teraflock.cli.connection import connected, connection
from teraflock.cli.facts import write_facts
from teraflock.cli.options import json_option
from teraflock.cli.output import write_json
from teraflock.cli.pages import names_of
from teraflock.words.member import roles_text
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.whoami import WhoAmI

HELP: Final = """Show your member, organisation and roles, and what your API key allows.

\b
Example:
  tera whoami
"""


@click.command(help=HELP)
@json_option
def command(as_json: bool) -> None:
    server = connection().server
    with connected() as client:
        found = client.whoami()
        names = {} if as_json else names_of(client.projects.list)
    if as_json:
        write_json(found)
        return
    write_facts(_facts(found, server, names))


def _facts(who: "WhoAmI", server: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield "member", f"{who.member_name} ({who.member_id})"
    yield "organisation", f"{who.organisation_name} ({who.organisation_id})"
    roles = roles_text(who.roles, names)
    yield "roles", ", ".join(filter(None, ["operator" if who.is_operator else "", roles]))
    yield "key", who.key_id
    yield "key limited to", f"project {names.get(who.project_id, who.project_id)}" if who.project_id else ""
    yield "key role", f"at most {who.role_max}" if who.role_max else ""
    yield "key expires", f"{time_text(who.expires_at)} UTC" if who.expires_at else ""
    yield "server", server
