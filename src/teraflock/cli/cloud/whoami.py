"""`tera whoami`: whose key this is."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from teraflock.cli.cloud.connection import connected, connection
from teraflock.cli.cloud.options import json_option
from teraflock.cli.cloud.showing import write_facts
from teraflock.cli.output import write_json

if TYPE_CHECKING:
    from teraflock.wire.tenant import WhoAmI

HELP: Final = """Who you are to the server, and what you may do there.

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
    if as_json:
        write_json(found)
        return
    write_facts(_facts(found, server))


def _facts(who: "WhoAmI", server: str) -> Iterator[tuple[str, str]]:
    yield "member", f"{who.member_name} ({who.member_id})"
    yield "organisation", f"{who.organisation_name} ({who.organisation_id})"
    roles = [f"{role} in {project or 'every project'}" for project, role in who.roles.items()]
    yield "roles", ", ".join([*["operator of the house"] * who.is_operator, *roles])
    yield "key", who.key_id
    yield "server", server
