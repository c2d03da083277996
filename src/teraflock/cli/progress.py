"""Progress of long work: one line that is redrawn on a terminal, nothing elsewhere."""

import sys
import time
from types import TracebackType
from typing import Final, Self

import click

from teraflock.cli.output import is_screen

REDRAW_SECONDS: Final = 0.1
BAR_CHARACTERS: Final = 24


class ProgressLine:
    """`with ProgressLine("Reading", "rows") as progress: progress(done, total)`."""

    def __init__(self, act: str, unit: str) -> None:
        self._act = act
        self._unit = unit
        self._drawn_at = 0.0
        self._shown = is_screen(sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if self._shown and (now - self._drawn_at >= REDRAW_SECONDS or done == total):
            self._drawn_at = now
            click.echo(f"\r\x1b[K{self._line(done, total)}", err=True, nl=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown and self._drawn_at:
            click.echo("\r\x1b[K", err=True, nl=False)

    def _line(self, done: int, total: int | None) -> str:
        if not total:
            return f"{self._act}: {done:,} {self._unit}"
        filled = BAR_CHARACTERS * done // total
        bar = "█" * filled + "░" * (BAR_CHARACTERS - filled)
        return f"{self._act}: {bar} {100 * done // total:3d} % of {total:,} {self._unit}"
