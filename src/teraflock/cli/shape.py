"""`tera shapes`: list named sizes and how many of each are free."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.cli.connection import in_project, mark_simulated
from teraflock.cli.table import write_list
from teraflock.words.shape import FIELDS

if TYPE_CHECKING:
    from teraflock.client import Client

HELP: Final = """List the named sizes that the hosts provide, and how many of each you could launch now.

\b
Examples:
  tera shapes
  tera launch --shape cpu-4 --wait
"""


@click.command(help=HELP)
@click.option("--free", "only_free", is_flag=True, help="Only shapes that can be launched now.")
@in_project
def command(client: "Client", only_free: bool, as_json: bool) -> None:
    found = [each for each in client.shapes.list() if each.free or not only_free]
    mark_simulated(client)
    none = "No shape is free" if only_free else "No shapes: no host is registered yet"
    write_list(found, FIELDS, as_json=as_json, empty=none)
