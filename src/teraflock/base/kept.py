"""Results that many people ask for and that read every row of a large table, kept for a few seconds.

How long is decided by how much was read, not by how long it took: a small installation never sees an outdated result,
however slow its machine is.
"""

from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from teraflock.base.clock import Clock

T = TypeVar("T")
ROWS_PER_SECOND: Final = 1_000
AGE_MAX: Final = timedelta(seconds=10)
ENTRIES_MAX: Final = 64


class Kept(Generic[T]):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[Hashable, tuple[datetime, timedelta, T]] = {}

    def get(self, key: Hashable, make: Callable[[], tuple[T, int]]) -> T:
        """The result for a key. `make` also returns how many rows it read: a thousand keep it for a second."""
        now = self._clock.now()
        if kept := self._kept.get(key):
            made_at, age_max, value = kept
            if timedelta(0) <= now - made_at < age_max:
                return value
        value, rows = make()
        if rows < ROWS_PER_SECOND:
            self._kept.pop(key, None)
            return value
        if len(self._kept) >= ENTRIES_MAX:
            self._kept.clear()
        self._kept[key] = (now, min(AGE_MAX, timedelta(seconds=rows // ROWS_PER_SECOND)), value)
        return value
