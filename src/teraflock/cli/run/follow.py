"""Follow a run: print its output as it arrives until it is over. Ending the client changes nothing."""

import time
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import Unavailable
from teraflock.cli.output import remark
from teraflock.cli.waiting import PhaseLine, PhaseWords, phases
from teraflock.words.run import OVER, live_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.run import RunDetails

PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 1.0
LOOK_SECONDS: Final = 3.0
"""How often the progress is asked for."""
AWAY_SECONDS_MAX: Final = 300.0
"""How long the server may be unreachable. The run continues meanwhile."""


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
    pause, answered, looks = PAUSE_SECONDS, time.monotonic(), _Looks(client, ref)
    while True:
        try:
            log = client.runs.log(ref, offset, node)
            answered = time.monotonic()
            if not log.text and log.state not in OVER:
                looks.show(line, log.state)
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
        time.sleep(pause)
        pause = min(pause * 1.3, PAUSE_SECONDS_MAX)


class _Looks:
    """What is shown while there is no new output: the state, and on a terminal also how far the run is."""

    def __init__(self, client: "Client", ref: str) -> None:
        self._client, self._ref = client, ref
        self._at, self._text = 0.0, ""

    def show(self, line: PhaseLine | PhaseWords, state: str) -> None:
        if state != "running":
            line(f"{self._ref}: {state}")
        elif isinstance(line, PhaseLine):
            if time.monotonic() - self._at >= LOOK_SECONDS:
                self._at, self._text = time.monotonic(), live_text(self._client.runs.get(self._ref))
            line(self._text)


def exit_code_of(run: "RunDetails") -> int:
    """The exit code of the command, or 1 if it has none."""
    if run.state == "done":
        return 0
    return run.exit_code if run.exit_code and 0 < run.exit_code < 256 else 1
