"""Follow a run: print its output as it arrives until it is over. Ending the client changes nothing."""

import time
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import Unavailable
from teraflock.cli.output import remark
from teraflock.cli.waiting import PhaseLine, PhaseWords, phases

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.run import RunDetails, RunLogAnswer

PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 1.0
AWAY_SECONDS_MAX: Final = 300.0
"""How long the server may be unreachable. The run continues meanwhile."""
OVER: Final = ("done", "failed", "cancelled")


def follow(client: "Client", ref: str, offset: int = 0, *, node: int = 0, err: bool = False) -> "RunDetails":
    """Print the log from an offset until the run is over. `err`: on stderr, because stdout is for JSON."""
    try:
        with phases() as line:
            _followed(client, ref, offset, line, node, err)
    except KeyboardInterrupt:
        remark(
            f"\nThe run continues. Follow it with `tera run logs -f {ref}`, stop it with `tera run cancel {ref}`"
        )
        raise
    return client.runs.get(ref)


def _followed(
    client: "Client", ref: str, offset: int, line: PhaseLine | PhaseWords, node: int, err: bool
) -> None:
    pause, answered = PAUSE_SECONDS, time.monotonic()
    while True:
        try:
            log = client.runs.log(ref, offset, node)
            answered = time.monotonic()
        except Unavailable:  # the server may be restarting
            if time.monotonic() - answered >= AWAY_SECONDS_MAX:
                raise
            time.sleep(PAUSE_SECONDS_MAX)
            continue
        if log.text:
            line.__exit__(None, None, None)
            click.echo(log.text, nl=False, err=err)
            offset, pause = log.next, PAUSE_SECONDS
            continue
        if log.state in OVER:
            return
        _show(line, ref, log)
        time.sleep(pause)
        pause = min(pause * 1.3, PAUSE_SECONDS_MAX)


def _show(line: PhaseLine | PhaseWords, ref: str, log: "RunLogAnswer") -> None:
    if log.state != "running":
        line(f"{ref}: {log.state}")


def exit_code_of(run: "RunDetails") -> int:
    """The exit code of the command, or 1 if it has none."""
    if run.state == "done":
        return 0
    return run.exit_code if run.exit_code and 0 < run.exit_code < 256 else 1
