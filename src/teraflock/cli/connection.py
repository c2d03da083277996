"""Which server the commands speak to, and with which key.

`TERA_SERVER` and `TERA_KEY` (and `TERA_CA`, a certificate to trust); else `connection.json` in the user's folder, which
`make up` writes.
"""

import os
from typing import TYPE_CHECKING

from teraflock.base.errors import Unavailable
from teraflock.cli.output import remark
from teraflock.words.text import SIMULATED

if TYPE_CHECKING:
    from teraflock.app.house.connection import Connection
    from teraflock.client import Client


class NoServer(Unavailable):
    """`tera` knows no server to talk to."""

    code = "no_server"
    remedy = "Run `make up`, or set `TERA_SERVER` and `TERA_KEY`."


def connection() -> "Connection":
    from teraflock.app.house.connection import find
    from teraflock.app.house.places import Places

    found = find(Places().connection, os.environ)
    if found is None:
        raise NoServer(
            "No server is known here",
            hint="`make up` starts one on this machine; `TERA_SERVER` and `TERA_KEY` name another",
        )
    return found


def mark_simulated(client: "Client") -> None:
    """Words beside answers that do not say it themselves: nothing that is simulated is shown as real."""
    health = client.health()
    if health.simulated:
        remark(f"{SIMULATED}: {'some' if health.engine == 'mixed' else 'nothing'} of this is real")


def connected(project: str | None = None) -> "Client":
    """A client for the commands: `with connected(project) as client:`."""
    from teraflock.client import Client

    found = connection()
    return Client(found.server, found.key, project=project or "", ca_file=os.environ.get("TERA_CA", ""))
