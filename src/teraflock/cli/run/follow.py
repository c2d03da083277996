"""Follow a run: print its output as it arrives until it is over. Ending the client changes nothing."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from teraflock.base.errors import Unavailable
from teraflock.cli.output import remark, write_json, write_output
from teraflock.cli.table import printable
from teraflock.cli.waiting import PhaseLine, PhaseWords, phases
from teraflock.words.run import OVER, cost_text, ending_text, live_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.run import RunDetails

T = TypeVar("T")
PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 1.0
LOOK_SECONDS: Final = 3.0
"""How often the progress is asked for."""
AWAY_SECONDS_MAX: Final = 300.0
"""How long the server may be unreachable. The run continues meanwhile."""


def follow(
    client: "Client", ref: str, offset: int = 0, *, name: str = "", node: int = 0, err: bool = False
) -> "RunDetails":
    """Print the log from an offset until the run is over. `err`: on stderr, because stdout is for JSON. `name` is what
    the run is called, if `ref` is its id."""
    name = name or ref
    try:
        with phases() as line:
            _followed(client, ref, offset, line, _Looks(client, ref, name), node, err)
    except KeyboardInterrupt:
        remark(
            f"\nThe run continues. Follow it with `tera run logs -f {name}`, stop it with `tera run cancel {name}`"
        )
        raise
    return _answered(partial(client.runs.get, ref))


def _answered(ask: Callable[[], T]) -> T:
    """The answer of the server, which may be restarting."""
    until = time.monotonic() + AWAY_SECONDS_MAX
    while True:
        try:
            return ask()
        except Unavailable:
            if time.monotonic() >= until:
                raise
            time.sleep(PAUSE_SECONDS_MAX)


def _followed(
    client: "Client",
    ref: str,
    offset: int,
    line: PhaseLine | PhaseWords,
    looks: "_Looks",
    node: int,
    err: bool,
) -> None:
    pause = PAUSE_SECONDS
    while True:
        log = _answered(partial(client.runs.log, ref, offset, node))
        if not log.text and log.state not in OVER:
            _answered(partial(looks.show, line, log.state))
        if log.text:
            line.__exit__(None, None, None)
            write_output(log.text, err=err)
            offset, pause = log.next, PAUSE_SECONDS
            continue
        if log.state in OVER:
            return
        time.sleep(pause)
        pause = min(pause * 1.3, PAUSE_SECONDS_MAX)


class _Looks:
    """What is shown while there is no new output: the state, and on a terminal also how far the run is."""

    def __init__(self, client: "Client", ref: str, name: str) -> None:
        self._client, self._ref, self._name = client, ref, name
        self._at, self._text = 0.0, ""

    def show(self, line: PhaseLine | PhaseWords, state: str) -> None:
        if state != "running":
            line(f"{self._name}: {state}")
        elif isinstance(line, PhaseLine):
            if time.monotonic() - self._at >= LOOK_SECONDS:
                self._at, self._text = time.monotonic(), live_text(self._client.runs.get(self._ref))
            line(self._text)


def exit_code_of(run: "RunDetails") -> int:
    """The exit code of the command, or 1 if it has none."""
    if run.state == "done":
        return 0
    return run.exit_code if run.exit_code and 0 < run.exit_code < 256 else 1


def finish(run: "RunDetails", *, as_json: bool = False) -> NoReturn:
    """Say how it ended, and end with its exit code."""
    if as_json:
        write_json(run)
    else:
        cost = f", cost {cost_text(run)}" if run.cost_micros else ""
        remark(f"{ending_text(run)}{cost}{f': {printable(run.problem)}' if run.problem else ''}")
        if run.outputs_bytes:
            remark(f"Copy its outputs with `tera run cp {run.name} FOLDER`")
    raise SystemExit(exit_code_of(run))
