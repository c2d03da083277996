"""`tera top`: what hosts, cards and instances use right now."""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

import click

from teraflock.base.clock import SystemClock
from teraflock.cli.connection import connected
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import columns, is_screen, write_json
from teraflock.cli.table import Column, printable, render, shortened
from teraflock.words.table import Fields, cells
from teraflock.words.telemetry import HOSTS, INSTANCES, card_rows, chart_facts, idle_text, summary_text
from teraflock.words.text import SIMULATED, age_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.telemetry import ReadingsAnswer

T = TypeVar("T")

SECONDS_MIN, SECONDS_MAX = 1, 3600
CHART_COLUMNS_MIN, CHART_COLUMNS_MAX = 12, 60
CLEAR: Final = "\x1b[H\x1b[J"
HELP: Final = """Show what your running instances use right now: processors, memory, disk, network and GPUs.

Operators see all hosts with their cards, or with `--project` the instances of one project. The screen is updated until
you press Ctrl-C. In a pipe, or with `--once` or `--json`, the readings are printed once. The server reads every 10
seconds.

\b
Examples:
  tera top
  tera top --once
  tera top --project vision
  tera top --json | jq '.[].cards[].temperature_celsius'
"""


@click.command(help=HELP)
@project_option
@click.option("--once", is_flag=True, help="Print the readings once.")
@click.option(
    "--seconds",
    type=click.IntRange(SECONDS_MIN, SECONDS_MAX),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="How often the screen is updated.",
)
@json_option
def command(project: str | None, once: bool, seconds: int, as_json: bool) -> None:
    with connected(project) as client:
        shows_hosts = project is None and client.whoami().is_operator
        if as_json:
            write_json(client.telemetry.hosts() if shows_hosts else client.telemetry.instances())
        elif once or not is_screen(sys.stdout):
            click.echo(_screen(client, shows_hosts))
        else:
            with suppress(KeyboardInterrupt):  # how the user ends it
                _follow(client, shows_hosts, seconds)


def _follow(client: "Client", shows_hosts: bool, seconds: int) -> None:
    while True:
        click.echo(CLEAR + _fitted(_screen(client, shows_hosts)), nl=False)
        sys.stdout.flush()
        time.sleep(seconds)


def _fitted(text: str) -> str:
    """Cut the text to the height of the terminal: a longer one would scroll its head away."""
    from shutil import get_terminal_size

    lines, height = text.splitlines(), get_terminal_size().lines - 1
    if len(lines) <= height:
        return text
    return "\n".join([*lines[: height - 1], f"… {len(lines) - height + 1} more lines: use `--once`"])


def _screen(client: "Client", shows_hosts: bool) -> str:
    return _hosts_screen(client) if shows_hosts else _instances_screen(client)


def _hosts_screen(client: "Client") -> str:
    hosts = client.telemetry.hosts()
    if not hosts:
        return "No readings yet. The server reads hosts every 10 seconds"
    now = SystemClock().now()
    head = f"{summary_text(hosts)}, read {age_text(max(host.at for host in hosts), now)} ago"
    idle = printable(idle_text(hosts, client.hosts.costs(), now))
    lines = [shortened(line, columns()) for line in (head, idle) if line]
    return "\n".join([*lines, "", _table(HOSTS, card_rows(hosts))])


def _instances_screen(client: "Client") -> str:
    found = client.telemetry.instances()
    if not found:
        return "No running instances"
    read = [each.at for each in found if each.at]
    age = f"read {age_text(max(read), SystemClock().now())} ago" if read else "not read yet"
    mark = f" {SIMULATED}" if any(each.simulated for each in found) else ""
    what = "running instance" if len(found) == 1 else "running instances"
    return f"{len(found)} {what}, {age}{mark}\n\n{_table(INSTANCES, found)}"


def write_chart(history: "ReadingsAnswer") -> None:
    """Print a line of bars for each card."""
    width = min(CHART_COLUMNS_MAX, max(CHART_COLUMNS_MIN, columns() - 40))
    for slot, chart in chart_facts(history, width):
        click.echo(f"  {printable(slot)}  {chart}")


def _table(fields: "Fields[T]", rows: Sequence[T]) -> str:
    titles = [Column(each.title, each.right, each.flexible, each.worth) for each in fields]
    return render(titles, [cells(fields, row) for row in rows], columns())
