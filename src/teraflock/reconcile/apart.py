"""Runs a turn for every site in its own thread, so that a site that is slow or hangs does not delay the
others."""

import threading
import time
from collections.abc import Callable
from typing import Final

from teraflock.instance.driver import ComputeDriver
from teraflock.instance.engines import Engines

SITE_SECONDS_MAX: Final = 2.0
"""How long a turn waits for its sites. A slower site continues in the background and is skipped until it is
done."""


class Apart:
    def __init__(
        self,
        engines: Engines,
        turn_of: Callable[[ComputeDriver], None],
        name: str,
        *,
        seconds_max: float = SITE_SECONDS_MAX,
        alone_inline: bool = True,
    ) -> None:
        """`alone_inline`: a single site is read without a thread, and may delay the loop."""
        self._engines = engines
        self._turn_of = turn_of
        self._name = name
        self._seconds_max = seconds_max
        self._alone_inline = alone_inline
        self._threads: dict[str, threading.Thread] = {}

    def turn(self) -> None:
        drivers = tuple(self._engines)
        if len(drivers) == 1 and self._alone_inline:
            self._turn_of(drivers[0])
            return
        for driver in drivers:
            running = self._threads.get(driver.site)
            if running is None or not running.is_alive():
                self._threads[driver.site] = self._started(driver)
        self.join(self._seconds_max)

    def join(self, seconds_max: float) -> None:
        """Wait for the sites that are still busy, up to `seconds_max`."""
        until = time.monotonic() + seconds_max
        for thread in tuple(self._threads.values()):
            thread.join(max(0.0, until - time.monotonic()))

    def _started(self, driver: ComputeDriver) -> threading.Thread:
        name = f"{self._name}-{driver.site}"
        thread = threading.Thread(target=self._turn_of, args=(driver,), name=name, daemon=True)
        thread.start()
        return thread
