"""`tera volume`: disks that outlive instances."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput
from teraflock.base.names import check_name
from teraflock.base.quantities import bytes_text, parse_memory_bytes
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.deletion import delete_named
from teraflock.cli.facts import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option, yes_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.table import write_list
from teraflock.cli.waiting import wait
from teraflock.words.volume import copied_text, facts, fields

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.volume import VolumeAnswer

HELP: Final = """Manage volumes: disks that outlive instances.

A volume belongs to your project until you delete it. It is created on the host of the first instance that gets it and
stays there; only instances on that host can have it, one at a time. It counts against the quota for disks and is
charged as a disk, also while no instance has it (`tera price`). With --copied it is copied to another host on a
schedule; if its own host is lost, `tera volume recover` brings it back there from the last copy.

\b
Examples:
  tera volume create results --size 100GB
  tera launch --gpu A100 --volume results
  tera volume attach results web --path /mnt/results
  tera volume snapshot results before-cleanup
  tera volume detach results
  tera volume copy results
  tera volume recover results
"""
WAIT_SECONDS_MAX: Final = 60.0
command = NamingGroup("command", help=HELP)


@command.command("list", help="List volumes and what they are attached to.")
@in_project
def list_volumes(client: "Client", as_json: bool) -> None:
    found = client.volumes.list()
    mark_simulated(client)
    empty = "No volumes yet. Create one with `tera volume create NAME --size 100GB`"
    write_list(found, fields(SystemClock().now()), as_json=as_json, empty=empty)


@command.command(help="Show one volume and its snapshots.")
@click.argument("name")
@in_project
def show(client: "Client", name: str, as_json: bool) -> None:
    found = client.volumes.get(name)
    mark_simulated(client)
    write_json(found) if as_json else write_facts(facts(found, SystemClock().now()))


@command.command(help="Create a volume. It is charged until you delete it.")
@click.argument("name")
@click.option("--size", required=True, metavar="GB", help="Its size, such as `100GB`. It can grow later.")
@click.option(
    "--copied", is_flag=True, help="Copy it to another host on a schedule. Copies are charged as snapshots."
)
@project_option
@json_option
def create(name: str, size: str, copied: bool, project: str | None, as_json: bool) -> None:
    check_name(name, "a volume")
    size_bytes = parse_memory_bytes(size)
    with connected(project) as client:
        mark_simulated(client)
        made = client.volumes.create(name, size_bytes, copied=copied)
    _tell(
        made,
        as_json,
        f"Created volume `{made.name}`. Attach it with `tera volume attach {made.name} INSTANCE`",
    )


@command.command(help="Attach a volume to an instance on its host, running or stopped.")
@click.argument("name")
@click.argument("instance")
@click.option("--path", default="", metavar="PATH", help="The mount point. [default: /volumes/NAME]")
@in_project
def attach(client: "Client", name: str, instance: str, path: str, as_json: bool) -> None:
    found = client.volumes.attach(name, instance, path)
    _tell(found, as_json, f"`{found.instance}` has the volume `{found.name}` at {found.path}")


@command.command(help="Detach a volume from its instance. Close its files there first.")
@click.argument("name")
@in_project
def detach(client: "Client", name: str, as_json: bool) -> None:
    client.volumes.detach(name)
    found = _settled(client, name, lambda each: each.state != "detaching")
    _tell(found, as_json, f"The volume `{found.name}` is {found.state}")


@command.command(help="Grow a volume, attached or not. It cannot shrink.")
@click.argument("name")
@click.option("--size", required=True, metavar="GB", help="Its new size, such as `200GB`.")
@project_option
@json_option
def resize(name: str, size: str, project: str | None, as_json: bool) -> None:
    size_bytes = parse_memory_bytes(size)
    with connected(project) as client:
        found = client.volumes.resize(name, size_bytes)
    _tell(found, as_json, f"The volume `{found.name}` has {bytes_text(found.size_bytes)}")


@command.command(help="Copy a volume to another host on a schedule, or no longer with --stop.")
@click.argument("name")
@click.option("--stop", is_flag=True, help="Make no more copies, and remove those that exist.")
@in_project
def copy(client: "Client", name: str, stop: bool, as_json: bool) -> None:
    found = client.volumes.copy(name, not stop)
    _tell(
        found, as_json, f"The volume `{found.name}` is {'no longer ' if stop else ''}copied to another host"
    )


@command.command(help="Bring a volume back from its last copy, when its host is lost.")
@click.argument("name")
@yes_option
@in_project
def recover(client: "Client", name: str, yes: bool, as_json: bool) -> None:
    if not yes:
        before = copied_text(client.volumes.get(name), SystemClock().now())
        confirm(
            f"Continue with the copy of `{name}` ({before})? What was written since is lost, with its snapshots",
            "Recovering",
        )
    found = client.volumes.recover(name)
    _tell(found, as_json, f"Recovered `{found.name}`. Attach it, or launch an instance with it")


@command.command(help="Create a snapshot of a volume, or delete one with --delete.")
@click.argument("name")
@click.argument("snapshot")
@click.option("--delete", is_flag=True, help="Delete this snapshot.")
@project_option
@json_option
def snapshot(name: str, snapshot: str, delete: bool, project: str | None, as_json: bool) -> None:
    check_name(snapshot, "a snapshot")
    with connected(project) as client:
        if delete:
            client.volumes.delete_snapshot(name, snapshot)
        else:
            client.volumes.snapshot(name, snapshot)
        wanted = () if delete else ("ready",)
        found = _settled(
            client, name, lambda each: {s.state for s in each.snapshots if s.name == snapshot} == set(wanted)
        )
    _tell(found, as_json, f"{'Deleted' if delete else 'Created'} snapshot `{snapshot}` of `{found.name}`")


@command.command(help="Replace the content of a detached volume with a snapshot.")
@click.argument("name")
@click.argument("snapshot")
@yes_option
@in_project
def restore(client: "Client", name: str, snapshot: str, yes: bool, as_json: bool) -> None:
    from teraflock.cli.snapshot import check_snapshot

    if not yes:
        check_snapshot(snapshot, (each.name for each in client.volumes.get(name).snapshots))
        confirm(f"Replace everything on `{name}` with the snapshot `{snapshot}`?", "Restoring")
    client.volumes.restore(name, snapshot)
    found = _settled(client, name, lambda each: each.state != "restoring")
    _tell(found, as_json, f"Restored `{found.name}` from `{snapshot}`")


@command.command(help="Delete a volume that is not attached, with its snapshots.")
@click.argument("name")
@yes_option
@in_project
def delete(client: "Client", name: str, yes: bool, as_json: bool) -> None:
    delete_named(client.volumes, name, "volume", yes=yes, as_json=as_json)


def _settled(client: "Client", name: str, done: Callable[["VolumeAnswer"], bool]) -> "VolumeAnswer":
    return wait(
        lambda: client.volumes.get(name),
        lambda seen: done(seen) or bool(seen.problem),
        lambda seen: f"volume {seen.name}: {seen.state}",
        seconds_max=WAIT_SECONDS_MAX,
    )


def _tell(volume: "VolumeAnswer", as_json: bool, sentence: str) -> None:
    if as_json:
        write_json(volume)
    elif volume.problem:
        raise BadInput(f"The volume `{volume.name}` has a problem: {volume.problem}")
    else:
        remark(sentence)
