"""`tera queue`: launches that wait for room."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.cli.connection import connected, in_project
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import write_json
from teraflock.cli.placement import write_waiting
from teraflock.cli.table import write_list
from teraflock.words.queue import fields

if TYPE_CHECKING:
    from teraflock.client import Client

HELP: Final = """List launches that wait for room, with their places and expected starts.

`tera launch --queue` adds a launch. The project that used the fewest GPU-hours in the last day comes first; within a
project, the highest `--priority`. Hosts are kept free for the first launch that does not fit yet, so that large ones
are not overtaken forever. Quotas and prices count when a launch starts.

An expected start comes from the time limits of running instances: it may be earlier. Without time limits it is unknown.

\b
Examples:
  tera launch --name big --gpu A100 --gpus 8 --instances 4 --together --queue
  tera queue
  tera queue --all
  tera queue cancel big
"""


@click.group(cls=NamingGroup, help=HELP, invoke_without_command=True)
@click.option("--all", "ended", is_flag=True, help="Include launches that no longer wait, for 7 days.")
@project_option
@json_option
@click.pass_context
def command(context: click.Context, ended: bool, project: str | None, as_json: bool) -> None:
    if context.invoked_subcommand is not None:
        return
    with connected(project) as client:
        found = client.queue.list(ended=ended)
    first = sorted(found, key=lambda each: (each.place is None, each.place or 0, each.id))
    write_list(first, fields(SystemClock().now()), as_json=as_json, empty="No launches are waiting")


@command.command(help="Show one queued launch, by id or name.")
@click.argument("ref", metavar="ID|NAME")
@in_project
def show(client: "Client", ref: str, as_json: bool) -> None:
    queued = client.queue.get(ref)
    if as_json:
        write_json(queued)
    else:
        write_waiting(queued)


@command.command(help="Cancel queued launches, by id or name.")
@click.argument("refs", nargs=-1, required=True, metavar="ID|NAME...")
@in_project
def cancel(client: "Client", refs: tuple[str, ...], as_json: bool) -> None:
    ended = [client.queue.cancel(ref) for ref in refs]
    if as_json:
        write_json(ended if len(ended) > 1 else ended[0])
        return
    for each in ended:
        click.echo(f"{each.name or each.id}: {each.state}")
