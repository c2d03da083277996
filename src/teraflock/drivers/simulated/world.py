"""Stores a simulated world: the protocol, and the implementation in memory.

A turn has exclusive access to the world, among the threads of a process and, if the world is a file, among
processes. Its changes are stored together when the block ends, and undone together if the block raises.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

from teraflock.drivers.simulated.model import Thing, Weather

T = TypeVar("T", bound=Thing)


class Turn(Protocol):
    def get(self, kind: type[T], key: str) -> T | None: ...

    def put(self, thing: Thing) -> None: ...

    def remove(self, kind: type[Thing], key: str) -> None: ...

    def every(self, kind: type[T]) -> list[T]:
        """Return all objects of a kind, sorted by key."""
        ...

    def on_host(self, kind: type[T], host: str) -> list[T]: ...


class World(Protocol):
    def read(self) -> AbstractContextManager[Turn]: ...

    def write(self) -> AbstractContextManager[Turn]: ...

    def close(self) -> None: ...


def weather(turn: Turn) -> Weather:
    return turn.get(Weather, "weather") or Weather()


class MemoryWorld:
    """A world for one process. It is lost when the process ends."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._shelves: dict[str, dict[str, Thing]] = defaultdict(dict)
        self._by_host: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)

    @contextmanager
    def read(self) -> Iterator[Turn]:
        with self._lock:
            yield _MemoryTurn(self._shelves, self._by_host)

    @contextmanager
    def write(self) -> Iterator[Turn]:
        with self._lock:
            turn = _MemoryTurn(self._shelves, self._by_host)
            try:
                yield turn
            except BaseException:
                turn.undo()
                raise

    def close(self) -> None:
        pass


class _MemoryTurn:
    def __init__(
        self,
        shelves: Mapping[str, dict[str, Thing]],
        by_host: Mapping[tuple[str, str], dict[str, None]],
    ) -> None:
        self._shelves = shelves
        self._by_host = by_host
        self._before: list[tuple[str, str, Thing | None]] = []

    def get(self, kind: type[T], key: str) -> T | None:
        found = self._shelves[kind.__name__].get(key)
        assert found is None or isinstance(found, kind)
        return found

    def put(self, thing: Thing) -> None:
        self._note(type(thing).__name__, thing.key)
        self._put(thing)

    def remove(self, kind: type[Thing], key: str) -> None:
        self._note(kind.__name__, key)
        self._remove(kind.__name__, key)

    def every(self, kind: type[T]) -> list[T]:
        shelf = self._shelves[kind.__name__]
        return [thing for _, thing in sorted(shelf.items()) if isinstance(thing, kind)]

    def on_host(self, kind: type[T], host: str) -> list[T]:
        found = (self.get(kind, key) for key in sorted(self._by_host[kind.__name__, host]))
        return [thing for thing in found if thing is not None]

    def undo(self) -> None:
        for kind, key, before in reversed(self._before):
            self._remove(kind, key)
            if before is not None:
                self._put(before)

    def _note(self, kind: str, key: str) -> None:
        self._before.append((kind, key, self._shelves[kind].get(key)))

    def _put(self, thing: Thing) -> None:
        kind = type(thing).__name__
        self._remove(kind, thing.key)
        self._shelves[kind][thing.key] = thing
        self._by_host[kind, thing.host][thing.key] = None

    def _remove(self, kind: str, key: str) -> None:
        before = self._shelves[kind].pop(key, None)
        if before is not None:
            del self._by_host[kind, before.host][key]
