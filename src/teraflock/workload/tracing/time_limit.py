"""A limit on how long a script may run: it ends at the line where it is then."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

AGAIN_SECONDS: Final = 0.5
"""An exception raised within a callback of Python's own is lost: it is raised again until it is heard."""


class OutOfTime(BaseException):
    """No `except Exception` of the script may hold it up."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Only the main thread hears signals; elsewhere there is no limit."""
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
