"""`tera show`: one instance, all that is known of it."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.quantities import bytes_text
from teraflock.cli.connection import connected
from teraflock.cli.instance.costs import cost_cells, costs_by_id, with_cost
from teraflock.cli.options import json_option, organisation_option, project_option
from teraflock.cli.output import columns, emphasised, write_json
from teraflock.cli.table import printable
from teraflock.cli.words import (
    age_text,
    cards_text,
    details_text,
    duration_text,
    state_text,
    time_text,
)

if TYPE_CHECKING:
    from teraflock.wire.instance import InstanceAnswer
    from teraflock.wire.operator import LocatedInstance

VALUE_COLUMNS_MIN: Final = 20
HELP: Final = """One instance: its addresses, its cards, how to log in, and what is wrong with it, if anything is.

\b
Examples:
  tera show web
  tera show web --json
  tera show web --acknowledge
  tera show web --all
"""


@click.command(help=HELP)
@click.argument("name")
@click.option("--acknowledge", is_flag=True, help="Clear the notice, such as that its disk was lost.")
@click.option("--all", "is_all", is_flag=True, help="Look in every organisation; for operators.")
@organisation_option
@project_option
@json_option
def command(
    name: str, acknowledge: bool, is_all: bool, organisation: str, project: str | None, as_json: bool
) -> None:
    with connected(project) as client:
        if is_all or organisation:
            _show_any(client.operator.instance(name, organisation=organisation), as_json)
            return
        instance = client.instances.acknowledge(name) if acknowledge else client.instances.get(name)
        costs = costs_by_id(client)
    if as_json:
        write_json(with_cost(instance, costs))
        return
    click.echo(emphasised(f"{instance.name}: {state_text(instance)}"))
    write_facts(facts(instance, *cost_cells(costs.get(instance.id))))


def _show_any(located: "LocatedInstance", as_json: bool) -> None:
    if as_json:
        write_json(located)
        return
    instance = located.instance
    click.echo(emphasised(f"{instance.name}: {state_text(instance)}"))
    more = [("organisation", located.organisation), ("project", located.project)]
    more += [("problem", located.problem)]
    write_facts(iter([*more, *(each for each in facts(instance) if each[0] != "problem")]))


def write_facts(pairs: Iterator[tuple[str, str]]) -> None:
    """Name and value below each other; what has no value is left out."""
    told = [(name, value) for name, value in pairs if value]
    width = max(len(name) for name, _ in told)
    for name, value in told:
        head, *rest = wrapped(printable(value), max(columns() - width - 4, VALUE_COLUMNS_MIN))
        click.echo(f"  {name.ljust(width)}  {head}")
        for line in rest:
            click.echo(f"  {' ' * width}  {line}")


def wrapped(value: str, width: int) -> list[str]:
    """Lines no wider than this, unless a single word is: an address must stay one word."""
    from textwrap import wrap

    return wrap(value, width, break_long_words=False, break_on_hyphens=False) or [""]


def facts(instance: "InstanceAnswer", price: str = "", cost: str = "") -> Iterator[tuple[str, str]]:
    now = SystemClock().now()
    shape = instance.shape
    yield "problem", instance.problem
    yield (
        "notice",
        f"{instance.notice} (`tera show {instance.name} --acknowledge`)" if instance.notice else "",
    )
    if instance.hold:
        since = f"{time_text(instance.hold.since)} UTC"
        yield "on hold", f"stopped by the {instance.hold.by} at {since}: {instance.hold.reason}"
    doing = [instance.operation, instance.step and f"after {instance.step}"]
    yield "doing", ": ".join(filter(None, [" ".join(filter(None, doing)), instance.doing]))
    yield "id", instance.id
    yield "GPUs", f"{cards_text(shape)} ({shape.gpu_name})" if shape.gpus else ""
    yield "cards", ", ".join(each.slot for each in instance.gpus)
    yield "vCPUs", str(shape.vcpus)
    yield "memory", bytes_text(shape.ram_bytes)
    yield "disk", bytes_text(shape.disk_bytes)
    yield "image", instance.image
    yield "host", instance.host or ""
    yield "site", instance.site
    if instance.rental:
        yield "rented", f"{instance.rental.type} in {instance.rental.zone or instance.rental.region}"
    yield "mode", instance.mode if instance.mode != "on-demand" else ""
    yield "restarts", instance.restart_policy
    yield "address", f"{instance.private_address} (within the project)" if instance.private_address else ""
    yield "SSH", ssh_text(instance)
    yield "Jupyter", instance.jupyter.url if instance.jupyter else ""
    yield "command", shlex.join(instance.command)
    yield "exit code", "" if instance.exit_code is None else str(instance.exit_code)
    yield "user-data", user_data_text(instance)
    yield "time limit", time_limit_text(instance)
    if instance.delete_when_done:
        yield "when done", "deleted; its log and exit code can be read for 7 days"
    yield "labels", details_text(instance.labels)
    yield "price", price
    yield "cost so far", cost
    yield "launched", f"{time_text(instance.created_at)} UTC ({age_text(instance.created_at, now)} ago)"
    if instance.running_since:
        yield (
            "runs since",
            f"{time_text(instance.running_since)} UTC ({age_text(instance.running_since, now)})",
        )


def user_data_text(instance: "InstanceAnswer") -> str:
    found = instance.user_data
    if found is None:
        return ""
    if found.state == "running":
        return "running"
    if found.exit_code is None:
        return "its end is not known"
    see = f"; `tera logs {instance.name} --user-data` shows its output" if found.exit_code else ""
    return f"{'failed' if found.exit_code else 'done'}, exit code {found.exit_code}{see}"


def time_limit_text(instance: "InstanceAnswer") -> str:
    if instance.time_limit_seconds is None:
        return ""
    limit = duration_text(instance.time_limit_seconds)
    if instance.stop_at is None:
        return f"{limit} after each start"
    reached = instance.wanted != "running" and SystemClock().now() >= instance.stop_at
    does = "deletes" if instance.delete_when_done else "stops"
    return f"{limit}, {'reached' if reached else f'{does} it'} {time_text(instance.stop_at)} UTC"


def ssh_text(instance: "InstanceAnswer") -> str:
    """The command that anyone may give who has the key; `tera ssh` knows the host key as well."""
    ssh = instance.ssh
    return f"ssh -p {ssh.port} {ssh.user}@{ssh.host}" if ssh else ""
