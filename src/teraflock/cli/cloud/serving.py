"""`tera serve`: the server in the foreground."""

from typing import Final

import click

HELP: Final = """Run the server in the foreground, until Ctrl-C or SIGTERM.

Settings come from `cloud/settings.toml` in the home folder and from TERA_*; docs/settings.md lists them.

\b
Examples:
  tera serve
  TERA_ENGINE=simulated TERA_LISTEN=127.0.0.1:9000 tera serve
  TERA_DATABASE=postgresql://tera@db/tera tera serve
"""


@click.command(help=HELP)
def command() -> None:
    from teraflock.app.server import serve

    serve()
