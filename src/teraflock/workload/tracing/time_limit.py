"""A limit on the time that a script may run. It is stopped at its current line."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

AGAIN_SECONDS: Final = 0.5
"""An exception inside a callback of Python itself is lost, so it is raised again until it takes effect."""


class OutOfTime(BaseException):
    """Not an `Exception`, so that the script's `except Exception` does not catch it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Only the main thread receives signals. In other threads there is no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
