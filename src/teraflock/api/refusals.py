"""Log lines about refused and failed requests. Their number is bounded, however many requests there are.

Invariants:
- the first line of a source is written immediately; the others in its window are counted, and one line sums them up;
- a window has at most `SOURCES_MAX` sources, and `SOURCES_OF_GROUP_MAX` of one group; the rest is counted together. So
  nobody can flood the log, even with many keys or addresses.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final

LOG: Final = logging.getLogger("teraflock.api")
WINDOW_SECONDS: Final = 10.0
SOURCES_MAX: Final = 20
SOURCES_OF_GROUP_MAX: Final = 5


class Refusals:
    def __init__(self, seconds: Callable[[], float], log: logging.Logger) -> None:
        self._seconds = seconds
        self._log = log
        self._lock = threading.Lock()
        self._began = seconds()
        self._more: dict[str, int] = {}
        """Lines that were not written in this window, by source."""
        self._lines: dict[str, str] = {}
        self._groups: dict[str, int] = {}
        self._others = 0

    def note(
        self,
        source: str,
        line: str,
        *,
        group: str = "",
        level: int = logging.INFO,
        error: Exception | None = None,
        context: Mapping[str, object] | None = None,
    ) -> None:
        """Write a line, or count it. `error` adds its traceback, `context` adds details for the operator."""
        with self._lock:
            self._turn_over()
            if source in self._more:
                self._more[source] += 1
                return
            group = group or source
            of_group = self._groups.get(group, 0)
            if len(self._more) >= SOURCES_MAX or of_group >= SOURCES_OF_GROUP_MAX:
                self._others += 1
                return
            self._groups[group] = of_group + 1
            self._more[source] = 0
            self._lines[source] = line
        more = f" {dict(context)}" if context else ""
        self._log.log(level, "%s%s", line, more, exc_info=error)

    def sum_up(self, *, at_once: bool = False) -> None:
        """Write the counts when the window is over. Called every second and at the end."""
        with self._lock:
            self._turn_over(at_once=at_once)

    def _turn_over(self, *, at_once: bool = False) -> None:
        now = self._seconds()
        passed = now - self._began
        if passed < WINDOW_SECONDS and not at_once:
            return
        for source, count in self._more.items():
            if count:
                self._log.info("… %d more in %.0f s: %s", count, passed, self._lines[source])
        if self._others:
            self._log.info("… %d more of other sources in %.0f s", self._others, passed)
        self._began, self._others = now, 0
        self._more, self._lines, self._groups = {}, {}, {}


class RequestLog:
    """The log lines about requests. Server errors are counted separately, so that refusals cannot hide them."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.refusals = Refusals(seconds, LOG)
        self.faults = Refusals(seconds, LOG)

    def sum_up(self, *, at_once: bool = False) -> None:
        self.refusals.sum_up(at_once=at_once)
        self.faults.sum_up(at_once=at_once)
