"""`tera show`: one instance, all that is known of it."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.quantities import memory_text
from teraflock.cli.bill.beside import cost_cells, costs_by_id, with_cost
from teraflock.cli.cloud.connection import connected
from teraflock.cli.cloud.options import json_option, organisation_option, project_option
from teraflock.cli.cloud.words import age_text, cards_text, details_text, state_text, time_text
from teraflock.cli.output import emphasised, write_json
from teraflock.cli.table import printable

if TYPE_CHECKING:
    from teraflock.wire.instance import InstanceAnswer
    from teraflock.wire.operator import LocatedInstance

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
            _show_any(client.any_instance(name, organisation=organisation), as_json)
            return
        instance = client.acknowledge(name) if acknowledge else client.instance(name)
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
        click.echo(f"  {name.ljust(width)}  {printable(value)}")


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
    yield "doing", " ".join(filter(None, [instance.operation, instance.step and f"after {instance.step}"]))
    yield "id", instance.id
    yield "GPUs", f"{cards_text(shape)} ({shape.gpu_name})" if shape.gpus else ""
    yield "cards", ", ".join(each.slot for each in instance.gpus)
    yield "vCPUs", str(shape.vcpus)
    yield "memory", memory_text(shape.ram_bytes)
    yield "disk", memory_text(shape.disk_bytes)
    yield "image", instance.image
    yield "host", instance.host or ""
    yield "address", f"{instance.private_address} (within the project)" if instance.private_address else ""
    yield "SSH", ssh_text(instance)
    yield "Jupyter", instance.jupyter.url if instance.jupyter else ""
    yield "command", shlex.join(instance.command)
    yield "exit code", "" if instance.exit_code is None else str(instance.exit_code)
    yield "labels", details_text(instance.labels)
    yield "price", price
    yield "cost so far", cost
    yield "launched", f"{time_text(instance.created_at)} UTC ({age_text(instance.created_at, now)} ago)"
    if instance.running_since:
        yield (
            "runs since",
            f"{time_text(instance.running_since)} UTC ({age_text(instance.running_since, now)})",
        )


def ssh_text(instance: "InstanceAnswer") -> str:
    """The command that anyone may give who has the key; `tera ssh` knows the host key as well."""
    ssh = instance.ssh
    return f"ssh -p {ssh.port} {ssh.user}@{ssh.host}" if ssh else ""
