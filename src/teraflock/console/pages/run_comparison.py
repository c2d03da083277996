"""What was estimated for a run beside what was measured. Pure."""

from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from teraflock.base.money import amount_text
from teraflock.base.quantities import bytes_text
from teraflock.wire.run import RunAnswer
from teraflock.words.text import duration_text


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    estimated: str
    span: str
    """The lowest and highest estimate. Empty: there is one."""
    measured: str
    difference: str
    """`+12%`. Empty: not measured, or not complete yet."""


TITLES = ("Time of a step", "Run time", "Cost", "GPU memory")


def comparison(run: RunAnswer, now: datetime) -> tuple[Compared, ...]:
    """A line for each value that was estimated. Totals get a difference when the run has ended."""
    return tuple(_lines(run, now)) if run.estimate else ()


def _lines(run: RunAnswer, now: datetime) -> Iterator[Compared]:
    guess = run.estimate
    assert guess is not None, "the caller has checked it"
    is_done = run.state == "done"
    step = run.progress.step_seconds if run.progress else None
    if guess.step_seconds:
        yield _line("Time of a step", guess.step_seconds, step, lambda value: f"{value:.4g} s")
    if guess.hours:
        seconds = tuple(each * 3600 for each in guess.hours)
        yield _line("Run time", seconds, _seconds(run, now), _duration, final=is_done)
    if guess.cost_micros:
        cost = run.cost_micros or None
        shown = _money(guess.currency or run.currency)
        yield _line("Cost", guess.cost_micros, cost, shown, final=is_done and guess.currency == run.currency)
    if guess.memory_bytes:
        held = run.progress.memory_bytes if run.progress else None
        yield _line("GPU memory", (guess.memory_bytes,), held, lambda value: bytes_text(int(value)))


def _line(
    title: str,
    expected: tuple[float, ...],
    measured: float | None,
    text: Callable[[float], str],
    *,
    final: bool = True,
) -> Compared:
    middle = expected[len(expected) // 2]
    known = measured is not None and final and middle > 0
    return Compared(
        title=title,
        estimated=text(middle),
        span=f"{text(expected[0])} – {text(expected[-1])}" if len(expected) > 1 else "",
        measured="" if measured is None else text(measured),
        difference=f"{100 * ((measured or 0) / middle - 1):+.0f}%" if known else "",
    )


def _seconds(run: RunAnswer, now: datetime) -> float | None:
    if run.running_since is None:
        return None
    return max(0.0, ((run.ended_at or now) - run.running_since).total_seconds())


def _duration(seconds: float) -> str:
    return duration_text(int(seconds))


def _money(currency: str) -> Callable[[float], str]:
    return lambda micros: amount_text(int(micros), currency)
