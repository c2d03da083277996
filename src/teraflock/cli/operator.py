"""Instances of every tenant, for operators: `tera ps --all` and `tera show --all`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from teraflock.base.clock import SystemClock
from teraflock.cli.connection import connected
from teraflock.cli.pages import all_of
from teraflock.cli.table import write_list
from teraflock.words.operator import fields

if TYPE_CHECKING:
    from teraflock.wire.operator import LocatedInstance


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
        one = states[0] if len(states) == 1 else ""  # the server filters by at most one state
        found: list[LocatedInstance] = [
            each
            for each in all_of(client.operator.instances, organisation=organisation, host=host, state=one)
            if (not states or each.instance.state in states)
            and labels.items() <= dict(each.instance.labels).items()
        ]
    write_list(found, fields(SystemClock().now()), as_json=as_json, empty="No instance matches")
