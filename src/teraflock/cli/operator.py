"""Instances of every tenant, for operators: `tera ps --all` and `tera show --all`."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.quantities import memory_text
from teraflock.cli.connection import connected
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.pages import all_of
from teraflock.cli.table import Column, render
from teraflock.cli.words import age_text, cards_text, state_text

if TYPE_CHECKING:
    from teraflock.wire.operator import LocatedInstance

COLUMNS: Final = (
    Column("ORGANISATION", flexible=True),
    Column("PROJECT", flexible=True, worth=8),
    Column("NAME", flexible=True),
    Column("STATE"),
    Column("GPUS", worth=7),
    Column("VCPUS", right=True, worth=4),
    Column("RAM", right=True, worth=4),
    Column("HOST", flexible=True, worth=6),
    Column("AGE", right=True, worth=5),
    Column("ID", worth=3),
    Column("HELD BECAUSE", flexible=True, worth=5),
    Column("PROBLEM", flexible=True, worth=6),
)


def list_everyone(
    project: str | None,
    states: tuple[str, ...],
    labels: Mapping[str, str],
    *,
    host: str,
    organisation: str,
    as_json: bool,
) -> None:
    with connected(project) as client:
        one = states[0] if len(states) == 1 else ""  # the server filters by one state
        found: list[LocatedInstance] = [
            each
            for each in all_of(client.operator.instances, organisation=organisation, host=host, state=one)
            if (not states or each.instance.state in states)
            and labels.items() <= dict(each.instance.labels).items()
        ]
    if as_json:
        write_json(found)
    elif found:
        now = SystemClock().now()
        click.echo(render(COLUMNS, [_cells(each, now) for each in found], columns()))
    else:
        remark("No instance matches")


def _cells(located: "LocatedInstance", now: datetime) -> list[str]:
    instance = located.instance
    return [
        located.organisation,
        located.project,
        instance.name,
        state_text(instance),
        cards_text(instance.shape),
        str(instance.shape.vcpus),
        memory_text(instance.shape.ram_bytes),
        instance.host or "",
        age_text(instance.created_at, now),
        instance.id,
        instance.hold.reason if instance.hold else "",
        located.problem,
    ]
