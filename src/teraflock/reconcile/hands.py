"""Tracks which instances the threads of one process work on. Leases in the rows separate processes; this
separates threads.

A process that was suspended may lose a row and lease it again while one of its threads still works on the old
version. That thread holds an older object than the one stored here: it must not call an engine or write.
"""

import threading
from collections.abc import Iterable

from teraflock.instance.model import Instance


class Hands:
    def __init__(self) -> None:
        self._held: dict[str, Instance] = {}
        """Each instance as its current thread last wrote or leased it. Compared by identity, not by value."""
        self._lock = threading.Lock()

    def take(self, leased: Iterable[Instance]) -> None:
        with self._lock:
            self._held.update((instance.id, instance) for instance in leased)

    def hold(self, instance: Instance) -> bool:
        with self._lock:
            return self._held.get(instance.id) is instance

    def pass_on(self, before: Instance, after: Instance | None) -> Instance | None:
        """Return what a thread continues with after a step, or None if it is done or another thread has the
        instance."""
        with self._lock:
            if self._held.get(before.id) is not before:
                return None
            if after is None:
                del self._held[before.id]
            else:
                self._held[after.id] = after
        return after
