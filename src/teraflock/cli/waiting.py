"""Waiting for the server's work: a line on the terminal says how far it is, and Ctrl-C leaves the work to go on."""

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

import click

from teraflock.base.errors import Refused, Unavailable
from teraflock.cli.output import columns, remark
from teraflock.cli.table import shortened
from teraflock.client.instance import TookTooLong

if TYPE_CHECKING:
    from teraflock.wire.instance import InstanceAnswer

FIRST_PAUSE_SECONDS: Final = 0.05
PAUSE_SECONDS_MAX: Final = 0.5
PAUSE_GROWTH: Final = 1.3
AWAY_SECONDS_MAX: Final = 30.0
"""How long a server may be silent, as while it is started again, before the waiting ends."""
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class NotDone(Refused):
    """The server tried, failed and undid the change."""

    code = "not_done"
    remedy = "`tera show NAME` has the reason."


class PhaseLine:
    """One line on stderr that is drawn over, on a terminal only."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
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
    """Where there is no terminal: each phase once, on a line of its own, so that a log shows where it stands."""

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
    return PhaseLine() if sys.stderr.isatty() else PhaseWords()


Seen = TypeVar("Seen")


def wait(
    look: Callable[[], Seen],
    is_done: Callable[[Seen], bool],
    describe: Callable[[Seen], str],
    *,
    seconds_max: float,
) -> Seen:
    """Look again and again until it is done; the last look is given back. A server that is away may come back."""
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
                    text = f"{error.sentence}; looking again"
                elapsed = time.monotonic() - began
                if elapsed >= seconds_max:
                    raise TookTooLong(
                        f"After {elapsed:.0f} s it is not done: {text}",
                        hint="It goes on without you; `tera ps` says how far it is, `--timeout` waits longer",
                    )
                line(f"{text} ({elapsed:.0f} s)")
                time.sleep(pause)
                pause = min(PAUSE_SECONDS_MAX, pause * PAUSE_GROWTH)
    except KeyboardInterrupt:
        remark("\nIt goes on without you; `tera ps` says how far it is")
        raise


def wait_for(
    look: Callable[[], Sequence["InstanceAnswer"]],
    reached: Callable[["InstanceAnswer"], bool],
    *,
    seconds_max: float,
) -> Sequence["InstanceAnswer"]:
    """Until each of the instances has reached what it should, or has come to rest where it should not."""

    def is_done(instance: "InstanceAnswer") -> bool:
        return reached(instance) or is_at_rest(instance)

    return wait(
        look,
        lambda seen: all(is_done(each) for each in seen),
        lambda seen: how_far([each for each in seen if not is_done(each)] or seen),
        seconds_max=seconds_max,
    )


def is_at_rest(instance: "InstanceAnswer") -> bool:
    """Nothing is being done and nothing more will be: it failed, is gone, or stands still as is wanted of it by now."""
    if instance.state in ("failed", "gone"):
        return True
    return instance.operation is None and instance.state == "stopped" == instance.wanted


def how_far(instances: Sequence["InstanceAnswer"]) -> str:
    """`web: starting, create`; of many the first, and how many others."""
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
