"""The server that commands talk to, and the API key they use.

Both come from `TERA_SERVER` and `TERA_KEY` (with `TERA_CA`, a certificate to trust), otherwise from `connection.json`
in the home folder, which `make up` writes.
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from teraflock.base.errors import Unavailable
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import remark
from teraflock.words.text import SIMULATED

if TYPE_CHECKING:
    from teraflock.app.installation.connection import Connection
    from teraflock.client import Client


class NoServer(Unavailable):
    """`tera` does not know which server to use."""

    code = "no_server"
    remedy = "Run `make up`, or set `TERA_SERVER` and `TERA_KEY`."


def connection() -> "Connection":
    from teraflock.app.installation.connection import find
    from teraflock.app.installation.places import Places

    found = find(Places().connection, os.environ)
    if found is None:
        raise NoServer(
            "No server is configured",
            hint="Run `make up` to start one on this machine, or set `TERA_SERVER` and `TERA_KEY`",
        )
    return found


def mark_simulated(client: "Client") -> None:
    """Print a notice if something is simulated and the output does not show it."""
    health = client.health()
    if health.simulated:
        remark(f"{SIMULATED}: {'only some' if health.engine == 'mixed' else 'none'} of this is real")


def connected(project: str | None = None) -> "Client":
    """The client of a command: `with connected(project) as client:`."""
    from teraflock.client import Client

    found = connection()
    return Client(found.server, found.key, project=project or "", ca_file=os.environ.get("TERA_CA", ""))


def in_project(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--project` and `--json` to a command, and call it with the client of the project.

    A command that checks its input before it needs a server calls `connected` itself.
    """

    @project_option
    @json_option
    @wraps(function)
    def run(project: str | None, **words: Any) -> None:
        with connected(project) as client:
            function(client, **words)

    return run
