"""`tera logs`: show the output of an instance's command, or its console."""

import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import BadInput
from teraflock.cli.connection import connected, mark_simulated
from teraflock.cli.instance.lifecycle import check_reason_given
from teraflock.cli.options import json_option, organisation_option, project_option, reason_option
from teraflock.cli.output import remark, write_json, write_output
from teraflock.cli.table import printable

if TYPE_CHECKING:
    from teraflock.client import Client

LOOK_AGAIN_SECONDS: Final = 1.0
HELP: Final = """Show the latest output of an instance's command. Without a command, show its console.

You can read the log of an instance launched with `--rm` by its name for 7 days after it is gone.

\b
Examples:
  tera logs job
  tera logs job --follow
  tera logs job --tail 20
  tera logs web --user-data
  tera logs job --org red-lab --reason "support request 4711"
"""


@click.command(help=HELP)
@click.argument("name")
@click.option("--follow", "-f", is_flag=True, help="Print new output until the command ends.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines.")
@click.option("--user-data", "user_data", is_flag=True, help="Show the output of the user-data script.")
@click.option("--console", is_flag=True, help="Show the console, even if there is a command.")
@reason_option
@organisation_option
@project_option
@json_option
def command(
    name: str,
    follow: bool,
    tail: int | None,
    user_data: bool,
    console: bool,
    reason: str,
    organisation: str,
    project: str | None,
    as_json: bool,
) -> None:
    check_reason_given(reason, organisation)
    if reason and (follow or user_data or console):
        raise BadInput(
            "`--reason` reads only the log of the command, once",
            hint="Leave `--follow`, `--user-data` and `--console` out",
        )
    if user_data and console:
        raise BadInput("`--user-data` and `--console` cannot be combined", hint="Leave one out")
    source = "user-data" if user_data else "console" if console else ""
    with connected(project) as client:
        asked = partial(client.operator.log, reason=reason, organisation=organisation)
        log = asked(name) if reason else client.instances.log(name, source=source)
        mark_simulated(client)
        if as_json:
            write_json(log)
            return
        text = "".join(log.text.splitlines(keepends=True)[-tail:] if tail else log.text)
        write_output(_ended(_harmless(text) if reason else text))
        exit_code = log.exit_code
        if follow:
            with suppress(KeyboardInterrupt):  # how the user ends it
                exit_code = _follow(client, name, log.text, exit_code, source)
    if exit_code is not None:
        remark(f"The {'user-data' if user_data else 'command'} ended with exit code {exit_code}")


def _follow(client: "Client", name: str, shown: str, exit_code: int | None, source: str) -> int | None:
    while exit_code is None:
        time.sleep(LOOK_AGAIN_SECONDS)
        log = client.instances.log(name, source=source)
        write_output(news(shown, log.text))
        shown, exit_code = log.text, log.exit_code
    return exit_code


def news(shown: str, text: str) -> str:
    """The part of `text` after what was shown. The server keeps only the end, so the start may be gone."""
    if text.startswith(shown):
        return text[len(shown) :]
    for length in range(min(len(shown), len(text)), 0, -1):
        if shown.endswith(text[:length]):
            return text[length:]
    return text


def _harmless(text: str) -> str:
    """A tenant's output without the escapes that would change the operator's terminal."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
