"""What the threads of one process have in hand. The lease in the row tells processes apart, this tells their threads.

A process that slept may have lost a row and leased it again while one of its threads still works on it as it was. That
thread holds an older value than the one noted here: it was overtaken, and may neither call an engine nor write.
"""

import threading
from collections.abc import Iterable

from teraflock.instance.model import Instance


class Hands:
    def __init__(self) -> None:
        self._held: dict[str, Instance] = {}
        """Each as whoever works on it last wrote or leased it; the very object, not one like it."""
        self._lock = threading.Lock()

    def take(self, leased: Iterable[Instance]) -> None:
        with self._lock:
            self._held.update((instance.id, instance) for instance in leased)

    def hold(self, instance: Instance) -> bool:
        with self._lock:
            return self._held.get(instance.id) is instance

    def pass_on(self, before: Instance, after: Instance | None) -> Instance | None:
        """What a thread goes on with after a step; None: nothing, or another thread has it."""
        with self._lock:
            if self._held.get(before.id) is not before:
                return None
            if after is None:
                del self._held[before.id]
            else:
                self._held[after.id] = after
        return after
