"""`tera ps`: list the instances of a project."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, get_args

import click

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput
from teraflock.cli.connection import connected
from teraflock.cli.instance.costs import budget_of, costs_by_id, tell_budget, tell_idle, with_cost
from teraflock.cli.operator import list_everyone
from teraflock.cli.options import json_option, organisation_option, project_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.parse import parse_pairs
from teraflock.cli.table import write_table
from teraflock.wire.instance import PhaseWord
from teraflock.words.instance import fields

if TYPE_CHECKING:
    from teraflock.wire.bill import CostAnswer
    from teraflock.wire.instance import InstanceAnswer

_PATTERN: Final = re.compile(r"[a-z0-9*?-]{0,63}")
HELP: Final = """List instances and their state.

With several filters, only instances that match all of them are listed. For operators, `--all` lists the instances of
every organisation; `--org` and `--host` narrow the list.

\b
Examples:
  tera ps
  tera ps --state running --label team=vision
  tera ps --name 'web-*'
  tera ps --state gone
  tera ps --json
  tera ps --all --host gpu-3
  tera ps --org red-lab
"""


@click.command(help=HELP)
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE",
    type=click.Choice(list(get_args(PhaseWord))),
    help="Only instances in this state. Can be repeated.",
)
@click.option(
    "--label", "labels", multiple=True, metavar="K=V", help="Only instances with this label. Can be repeated."
)
@click.option(
    "--name", default="", metavar="PATTERN", help="Only instances whose name matches, such as `web-*`."
)
@click.option("--all", "is_all", is_flag=True, help="For operators: instances of every organisation.")
@click.option("--host", default="", metavar="NAME", help="With --all: only instances on this host.")
@organisation_option
@project_option
@json_option
def command(
    project: str | None,
    states: tuple[str, ...],
    labels: tuple[str, ...],
    name: str,
    is_all: bool,
    host: str,
    organisation: str,
    as_json: bool,
) -> None:
    wished = parse_pairs(labels, "--label")
    if not _PATTERN.fullmatch(name):
        raise BadInput(
            f"`{name}` cannot match any instance name",
            hint="Use `a-z`, `0-9`, `-`, and the wildcards `*` and `?`",
        )
    if is_all or host or organisation:
        list_everyone(project, states, wished, host=host, organisation=organisation, as_json=as_json)
        return
    with connected(project) as client:
        matching = client.instances.list(states=states, labels=wished, name=name)
        found = sorted(matching, key=lambda each: (each.created_at, each.name))
        costs = costs_by_id(client) if found else {}
        budget = budget_of(client) if costs and not as_json else None
    if as_json:
        write_json([with_cost(each, costs) for each in found])
    elif found:
        write_instances(found, costs)
        tell_idle(costs.values(), SystemClock().now())
        if budget:
            tell_budget(budget)
    else:
        remark(
            "No instance matches"
            if states or wished or name
            else "No instances yet. Create one with `tera launch`"
        )


def write_instances(
    instances: Sequence["InstanceAnswer"], costs: Mapping[str, "CostAnswer"] | None = None
) -> None:
    write_table(fields(SystemClock().now(), costs or {}), instances)
