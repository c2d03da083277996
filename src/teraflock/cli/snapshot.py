"""`tera snapshot` and `tera restore`: snapshots of an instance's disk."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput, not_found
from teraflock.base.names import check_name
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.instance.lifecycle import act_on, tell_states
from teraflock.cli.options import json_option, project_option, wait_option, yes_option
from teraflock.cli.output import tell, write_json
from teraflock.cli.table import write_list
from teraflock.cli.waiting import NotDone, wait
from teraflock.wire.snapshot import RestoreRequest, SnapshotRequest
from teraflock.words.snapshot import fields

if TYPE_CHECKING:
    from teraflock.client import Client

SNAPSHOT_HELP: Final = """Create a snapshot of an instance's disk. Without SNAPSHOT, list its snapshots.

\b
Examples:
  tera snapshot web before-upgrade
  tera snapshot web
  tera snapshot web before-upgrade --delete
"""
RESTORE_HELP: Final = """Restore the disk of an instance from a snapshot. Everything written since is lost.

A running instance is restarted.

\b
Example:
  tera restore web before-upgrade
"""


@click.command(help=SNAPSHOT_HELP)
@click.argument("name")
@click.argument("snapshot_name", metavar="[SNAPSHOT]", required=False)
@click.option("--delete", "is_delete", is_flag=True, help="Delete this snapshot.")
@wait_option(default=True)
@project_option
@json_option
def snapshot(
    name: str,
    snapshot_name: str | None,
    is_delete: bool,
    project: str | None,
    wait: bool,
    timeout: float,
    as_json: bool,
) -> None:
    if is_delete and not snapshot_name:
        raise BadInput("`--delete` needs the name of a snapshot", hint=f"`tera snapshot {name}` lists them")
    with connected(project) as client:
        mark_simulated(client)
        if snapshot_name is None:
            found = client.snapshots.list(name)
            empty = "No snapshots yet. Add a name to create one"
            write_list(found, fields(SystemClock().now()), as_json=as_json, empty=empty)
        elif is_delete:
            client.snapshots.delete(name, snapshot_name)
            tell({"deleted": snapshot_name}, f"Deleted snapshot `{snapshot_name}` of `{name}`", as_json)
        else:
            _make(client, name, check_name(snapshot_name, "a snapshot"), wait, timeout, as_json)


def _make(
    client: "Client", name: str, called: str, is_waited: bool, seconds_max: float, as_json: bool
) -> None:
    made = client.snapshots.create(name, SnapshotRequest(name=called))
    if is_waited:
        made = wait(
            lambda: next((each for each in client.snapshots.list(name) if each.id == made.id), made),
            lambda seen: seen.state != "making",
            lambda seen: f"snapshot {seen.name}: {seen.state}",
            seconds_max=seconds_max,
        )
    if made.state == "failed":
        why = f": {made.problem}" if made.problem else ""
        raise NotDone(
            f"The snapshot `{called}` of `{name}` failed{why}",
            hint="Run the command again; you can use the same name",
        )
    if as_json:
        write_json(made)
    else:
        click.echo(f"{name}/{made.name}: {made.state}")


@click.command(help=RESTORE_HELP)
@click.argument("name")
@click.argument("snapshot_name", metavar="SNAPSHOT")
@yes_option
@wait_option(default=True)
@in_project
def restore(
    client: "Client", name: str, snapshot_name: str, yes: bool, wait: bool, timeout: float, as_json: bool
) -> None:
    instance = client.instances.get(name)
    if not yes:
        check_snapshot(snapshot_name, (each.name for each in client.snapshots.list(instance.id)))
        restarts = " and restart it" if instance.state == "running" else ""
        confirm(
            f"Restore `{instance.name}` from `{snapshot_name}`{restarts}? Everything written since is lost.",
            "Restoring",
        )
    done = act_on(
        client,
        [instance.id],
        lambda client, id: client.snapshots.restore(id, RestoreRequest(snapshot=snapshot_name)),
        instance.wanted,
        wait,
        timeout,
    )
    tell_states(done, as_json, waited=wait)


def check_snapshot(name: str, known: Iterable[str]) -> None:
    """Raise `NotFound` unless the snapshot exists, so that nobody confirms what cannot be done."""
    names = tuple(known)
    if name not in names:
        raise not_found("snapshot", name, names)
