"""Wait for the server's work. A line on the terminal shows the progress; Ctrl-C ends the wait, not the work."""

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

import click

from teraflock.base.errors import Refused, Unavailable
from teraflock.cli.output import columns, is_screen, remark
from teraflock.cli.table import shortened
from teraflock.client.instance import TookTooLong

if TYPE_CHECKING:
    from teraflock.wire.instance import InstanceAnswer

FIRST_PAUSE_SECONDS: Final = 0.05
PAUSE_SECONDS_MAX: Final = 0.5
PAUSE_GROWTH: Final = 1.3
AWAY_SECONDS_MAX: Final = 30.0
"""How long the server may be unreachable, for example during a restart, before the wait fails."""
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class NotDone(Refused):
    """The server tried, failed and undid the change."""

    code = "not_done"
    remedy = "`tera show NAME` has the reason."


class PhaseLine:
    """One line on stderr that is redrawn, on a terminal only."""

    def __init__(self) -> None:
        self._shown = is_screen(sys.stderr)
        self._turn = 0

    def __enter__(self) -> Self:
        return self

    def __call__(self, text: str) -> None:
        if self._shown:
            self._turn += 1
            line = shortened(f"{SPINNER[self._turn % len(SPINNER)]} {text}", columns() - 1)
            click.echo(f"\r\x1b[K{line}", err=True, nl=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown and self._turn:
            click.echo("\r\x1b[K", err=True, nl=False)


class PhaseWords:
    """Without a terminal: each phase once, on its own line, so that a log shows the progress."""

    def __init__(self) -> None:
        self._last = ""

    def __enter__(self) -> Self:
        return self

    def __call__(self, text: str) -> None:
        if text != self._last:
            self._last = text
            click.echo(f"… {text}", err=True)

    def __exit__(self, *_: object) -> None:
        pass


def phases() -> PhaseLine | PhaseWords:
    return PhaseLine() if is_screen(sys.stderr) else PhaseWords()


Seen = TypeVar("Seen")


def wait(
    look: Callable[[], Seen],
    is_done: Callable[[Seen], bool],
    describe: Callable[[Seen], str],
    *,
    seconds_max: float,
) -> Seen:
    """Poll until it is done, and return the last value. Tolerates a server that is unreachable for a while."""
    began, pause = time.monotonic(), FIRST_PAUSE_SECONDS
    answered, text = began, ""
    try:
        with PhaseLine() as line:
            while True:
                try:
                    seen = look()
                    if is_done(seen):
                        return seen
                    answered, text = time.monotonic(), describe(seen)
                except Unavailable as error:
                    if time.monotonic() - answered >= AWAY_SECONDS_MAX:
                        raise
                    text = f"{error.sentence}; trying again"
                elapsed = time.monotonic() - began
                if elapsed >= seconds_max:
                    raise TookTooLong(
                        f"Not done after {elapsed:.0f} s: {text}",
                        hint="The server continues. Check with `tera ps`, or wait longer with `--timeout`",
                    )
                line(f"{text} ({elapsed:.0f} s)")
                time.sleep(pause)
                pause = min(PAUSE_SECONDS_MAX, pause * PAUSE_GROWTH)
    except KeyboardInterrupt:
        remark("\nThe server continues. Check with `tera ps`")
        raise


def wait_for(
    look: Callable[[], Sequence["InstanceAnswer"]],
    reached: Callable[["InstanceAnswer"], bool],
    *,
    seconds_max: float,
) -> Sequence["InstanceAnswer"]:
    """Wait until each instance is in the expected state, or at rest in another one."""

    def is_done(instance: "InstanceAnswer") -> bool:
        return reached(instance) or is_at_rest(instance)

    return wait(
        look,
        lambda seen: all(is_done(each) for each in seen),
        lambda seen: how_far([each for each in seen if not is_done(each)] or seen),
        seconds_max=seconds_max,
    )


def is_at_rest(instance: "InstanceAnswer") -> bool:
    """Whether the instance will not change by itself: it failed, is gone, or has reached the wanted state."""
    if instance.state in ("failed", "gone"):
        return True
    return instance.operation is None and instance.state == "stopped" == instance.wanted


def how_far(instances: Sequence["InstanceAnswer"]) -> str:
    """`web: starting, create`. For several instances, the first one and the number of the others."""
    first = instances[0]
    words = [first.state]
    if first.operation and first.operation not in words:
        words.append(first.operation)
    if first.step:
        words.append(first.step)
    text = f"{first.name}: {', '.join(words)}"
    if first.problem:
        text += f" ({first.problem})"
    return text if len(instances) == 1 else f"{text}; and {len(instances) - 1} more"
