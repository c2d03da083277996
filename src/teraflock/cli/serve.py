"""`tera serve`: run the server in the foreground."""

from typing import Final

import click

from teraflock.base.errors import TeraflockError
from teraflock.cli.output import remark

HELP: Final = """Run the server in the foreground, until Ctrl-C or SIGTERM.

Settings come from `cloud/settings.toml` in the home folder and from TERA_* variables; docs/settings.md lists them.
On a machine with systemd, `make up` as root creates a systemd unit that runs this command.

\b
Examples:
  tera serve
  TERA_ENGINE=simulated TERA_LISTEN=127.0.0.1:9000 tera serve
  TERA_DATABASE=postgresql://tera@db/tera tera serve
"""


@click.command(help=HELP)
@click.option(
    "--prepare",
    is_flag=True,
    help="First start the engine and apply kernel settings, as after a boot.",
)
def command(prepare: bool) -> None:
    from teraflock.app.server import serve

    if prepare:
        _prepare()
    serve()


def _prepare() -> None:
    """Start the engine, but only warn if that fails: the server runs without its engine and keeps looking for it."""
    from teraflock.app.installation.places import Places
    from teraflock.app.installation.up import prepare

    try:
        prepare(Places())
    except TeraflockError as error:
        remark(f"warning: {error.sentence}: {error.hint}")
