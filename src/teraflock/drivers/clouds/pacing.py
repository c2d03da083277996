"""One pacer per account in a process: all its drivers and threads together keep to the provider's rates."""

import threading
import time
from collections.abc import Callable
from typing import Final

from teraflock.drivers.clouds.model import Pace
from teraflock.instance.engine_errors import EngineBusy

WAIT_SECONDS_MAX: Final = 10.0
"""A thread waits this long for its turn. Beyond that, the loop that asked tries again later."""
HOLD_SECONDS_MAX: Final = 300.0
"""The longest pause that a provider can ask for."""
HOLD_SECONDS: Final = 5.0
"""The pause after a refusal without `Retry-After`. Doubled with each further one."""


class Pacer:
    def __init__(
        self,
        pace: Pace,
        *,
        seconds: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._pace = pace
        self._seconds = seconds
        self._pause = pause
        self._lock = threading.Lock()
        self._next = 0.0
        self._next_launch = 0.0
        self._held_until = 0.0
        self._refusals = 0

    def wait(self, act: str) -> None:
        """Wait for the turn of a call. Raise `EngineBusy` if that takes too long."""
        with self._lock:
            now = self._seconds()
            at = max(now, self._next, self._held_until, self._next_launch if act == "launch" else 0.0)
            if at - now > WAIT_SECONDS_MAX:
                raise EngineBusy(
                    f"The provider's rate limit allows the next request in {at - now:.0f} seconds",
                    hint="Teraflock waits and tries again",
                )
            self._next = at + self._pace.call_seconds
            if act == "launch":
                self._next_launch = at + self._pace.launch_seconds
        if at > now:
            self._pause(at - now)

    def refused(self, retry_after: float | None) -> None:
        """The provider asked for fewer requests."""
        with self._lock:
            self._refusals += 1
            seconds = HOLD_SECONDS * 2 ** min(self._refusals - 1, 6) if retry_after is None else retry_after
            until = self._seconds() + min(max(seconds, 0.0), HOLD_SECONDS_MAX)
            self._held_until = max(self._held_until, until)

    def answered(self) -> None:
        with self._lock:
            self._refusals = 0


_PACERS: Final[dict[str, Pacer]] = {}
_LOCK: Final = threading.Lock()


def pacer_of(account: str, pace: Pace) -> Pacer:
    """The pacer of an account, shared by everything in this process that uses it."""
    with _LOCK:
        return _PACERS.setdefault(account, Pacer(pace))
