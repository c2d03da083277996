"""`tera stop`, `start`, `restart` and `delete`. Each takes several names and waits until all are done."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from msgspec.structs import replace

from teraflock.app.home import home
from teraflock.base.errors import BadInput, NotFound
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected, in_project
from teraflock.cli.instance import ssh_files
from teraflock.cli.instance.costs import tell_spent
from teraflock.cli.options import (
    json_option,
    organisation_option,
    project_option,
    reason_option,
    wait_option,
    yes_option,
)
from teraflock.cli.output import remark, write_json
from teraflock.cli.waiting import NotDone, wait_for
from teraflock.words.instance import state_text
from teraflock.words.text import SIMULATED

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.instance import InstanceAnswer

Act = Callable[["Client", str], "InstanceAnswer"]

START_HELP: Final = """Start stopped instances. Each needs free GPUs, vCPUs and memory, which others may use by now.

An instance with a command runs it again from the beginning, with an empty log and a new exit code.
For operators: `--reason` lifts the hold of any tenant's instance and starts it.

\b
Examples:
  tera start web
  tera start node-1 node-2 node-3
  tera start ins_01j… --reason "the attack is over"
"""
STOP_HELP: Final = """Stop instances. Disks and addresses are kept; GPUs become free for others.

For operators: `--reason` stops any tenant's instance and holds it. The tenant sees the reason and cannot start the
instance until an operator lifts the hold.

\b
Examples:
  tera stop web
  tera stop web --no-wait
  tera stop web --org red-lab --reason "it attacks other networks"
"""
RESTART_HELP: Final = """Stop instances and start them again on the same disks.

\b
Example:
  tera restart web
"""
DELETE_HELP: Final = """Delete instances with their disks and snapshots. This cannot be undone.

\b
Examples:
  tera delete web
  tera delete node-1 node-2 --yes
  tera delete ins_01j… --reason "unpaid since March"
"""


@click.command(help=START_HELP)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@wait_option(default=True)
@reason_option
@click.option(
    "--release", "release_only", is_flag=True, help="With --reason: lift the hold without starting."
)
@organisation_option
@project_option
@json_option
def start(
    names: tuple[str, ...],
    project: str | None,
    organisation: str,
    reason: str,
    release_only: bool,
    wait: bool,
    timeout: float,
    as_json: bool,
) -> None:
    check_reason_given(reason, organisation)
    if release_only and not reason:
        raise BadInput("`--release` needs a reason", hint="Add `--reason TEXT`. The tenant sees it")
    target, look = ("stopped" if release_only else "running"), look_at_any if reason else look_at_own

    def act(client: "Client", name: str) -> "InstanceAnswer":
        if not reason:
            return client.instances.start(name)
        found = client.operator.start(name, reason, organisation=organisation, release_only=release_only)
        return found.instance

    with connected(project) as client:
        done = act_on(client, names, act, target, wait, timeout, look)
    tell_states(done, as_json, waited=wait)


@click.command(help=STOP_HELP)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@wait_option(default=True)
@reason_option
@organisation_option
@project_option
@json_option
def stop(
    names: tuple[str, ...],
    project: str | None,
    organisation: str,
    reason: str,
    wait: bool,
    timeout: float,
    as_json: bool,
) -> None:
    check_reason_given(reason, organisation)

    def act(client: "Client", name: str) -> "InstanceAnswer":
        if not reason:
            return client.instances.stop(name)
        return client.operator.stop(name, reason, organisation=organisation).instance

    with connected(project) as client:
        done = act_on(client, names, act, "stopped", wait, timeout, look_at_any if reason else look_at_own)
        if not as_json and not reason:
            tell_spent(client, done)
    tell_states(done, as_json, waited=wait)


@click.command(help=RESTART_HELP)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@wait_option(default=True)
@in_project
def restart(client: "Client", names: tuple[str, ...], wait: bool, timeout: float, as_json: bool) -> None:
    done = act_on(
        client, names, lambda client, name: client.instances.restart(name), "running", wait, timeout
    )
    tell_states(done, as_json, waited=wait)


@click.command(help=DELETE_HELP)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@yes_option
@wait_option(default=True)
@reason_option
@organisation_option
@project_option
@json_option
def delete(
    names: tuple[str, ...],
    yes: bool,
    project: str | None,
    organisation: str,
    reason: str,
    wait: bool,
    timeout: float,
    as_json: bool,
) -> None:
    check_reason_given(reason, organisation)
    look = look_at_any if reason else look_at_own

    def seen(client: "Client", name: str) -> "InstanceAnswer":
        if not reason:
            return client.instances.get(name)
        return client.operator.instance(name, organisation=organisation).instance

    with connected(project) as client:
        found = [seen(client, name) for name in _once(names)]  # so that a wrong name deletes nothing
        if not yes:
            whose = "its disk" if len(found) == 1 else "their disks"
            confirm(f"Delete {_listed(found)} with {whose} and snapshots?", "Deleting")
        ids = tuple(each.id for each in found)
        done = act_on(
            client,
            ids,
            lambda client, id: (
                client.operator.delete(id, reason).instance if reason else client.instances.delete(id)
            ),
            "gone",
            wait,
            timeout,
            look,
        )
    for each in done:
        ssh_files.forget(Path(home()), each.id)
    tell_states(done, as_json, waited=wait)


def check_reason_given(reason: str, organisation: str) -> None:
    if organisation and not reason:
        raise BadInput(
            "Acting on another organisation's instance needs a reason",
            hint="Add `--reason TEXT`. The tenant sees it",
        )


def look_at_own(client: "Client", id: str) -> "InstanceAnswer":
    return client.instances.get(id)


def look_at_any(client: "Client", id: str) -> "InstanceAnswer":
    """For operators: an instance of any tenant."""
    return client.operator.instance(id).instance


def act_on(
    client: "Client",
    names: Sequence[str],
    act: Act,
    target: str,
    wait: bool,
    seconds_max: float,
    look_at: Act = look_at_own,
) -> list["InstanceAnswer"]:
    """Send all requests, then wait for all instances."""
    asked = [act(client, name) for name in _once(names)]
    if not wait:
        return asked
    latest = {each.id: each for each in asked}

    def look() -> list["InstanceAnswer"]:
        for id in latest:
            latest[id] = _look(client, latest[id], look_at)
        return list(latest.values())

    return list(wait_for(look, lambda each: has_reached(each, target), seconds_max=seconds_max))


def has_reached(instance: "InstanceAnswer", target: str) -> bool:
    return instance.state == target and instance.operation is None


def _look(client: "Client", before: "InstanceAnswer", look_at: Act) -> "InstanceAnswer":
    try:
        seen = look_at(client, before.id)
    except NotFound:
        return replace(before, state="gone", operation=None)
    return replace(
        seen, simulated=seen.simulated or before.simulated
    )  # a gone instance has no host that shows it


def tell_states(instances: Sequence["InstanceAnswer"], as_json: bool, *, waited: bool) -> None:
    """Print one line per instance, and raise if one did not reach the expected state."""
    if as_json:
        write_json(instances if len(instances) > 1 else instances[0])
    else:
        for each in instances:
            click.echo(f"{each.name}: {state_text(each)}")
    for each in instances:
        if waited and each.state not in (each.wanted, "gone"):
            mark = f" ({SIMULATED})" if each.simulated else ""
            raise NotDone(
                f"`{each.name}`{mark} is {each.state}: {each.problem or 'the reason is unknown'}",
                hint=f"See what happened with `tera events --instance {each.name}`",
            )
        if each.problem:
            remark(f"{each.name}: {each.problem}")


def _once(names: Sequence[str]) -> list[str]:
    if any(not name for name in names):
        raise BadInput("An instance name cannot be empty", hint="`tera ps` lists the names")
    return list(dict.fromkeys(names))


def _listed(instances: Sequence["InstanceAnswer"]) -> str:
    return ", ".join(f"`{each.name}`" + (f" ({SIMULATED})" if each.simulated else "") for each in instances)
