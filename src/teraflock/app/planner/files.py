"""The planner's files in the home folder, for a server: kept in memory and read again when they change.

Invariants: a tenant never sees a path of the server. A file that cannot be read is logged, and its last good value
stays in use. Without a good value, requests fail with `unavailable`.
"""

import logging
import os
import threading
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from teraflock.app.home import RATES_NAME
from teraflock.app.local import Local
from teraflock.app.own_cards import FILE_NAME as CARDS_NAME
from teraflock.app.own_cards import read_own_cards
from teraflock.app.owned_servers import read_servers
from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.base.exchange import Rates
from teraflock.catalog.model import Card
from teraflock.plan.owned import FILE_NAME, Server
from teraflock.storage.database import Database

LOG: Final = logging.getLogger("teraflock.planner")
T = TypeVar("T")
Stamp = tuple[int, int, int] | None


class PlannerFiles:
    """The planner's files of one home folder. Thread-safe."""

    def __init__(self, home: str, clock: Clock) -> None:
        self._local = Local(clock, home)
        self._opening = threading.Lock()
        self._rates = _CachedFile(f"{home}/{RATES_NAME}", lambda: Local(clock, home).rates)
        self._cards = _CachedFile[Sequence[Card]](f"{home}/{CARDS_NAME}", lambda: tuple(read_own_cards(home)))
        self._servers = _CachedFile[Sequence[Server]](
            f"{home}/{FILE_NAME}", lambda: tuple(read_servers(home))
        )

    def database(self) -> Database:
        """Open the database of offers on first use. A new database gets the shipped offers."""
        with self._opening:
            try:
                return self._local.database()
            except TeraflockError as error:
                raise _unreadable("offers", error) from error

    def rates(self) -> Rates:
        return self._rates.get()

    def own_cards(self) -> Sequence[Card]:
        return self._cards.get()

    def servers(self) -> Sequence[Server]:
        return self._servers.get()

    def close(self) -> None:
        with self._opening:
            self._local.__exit__()


class _CachedFile(Generic[T]):
    """The parsed content of a file, read again when the file changes."""

    def __init__(self, path: str, read: Callable[[], T]) -> None:
        self._path = path
        self._read = read
        self._lock = threading.Lock()
        self._held: tuple[Stamp, T] | None = None

    def get(self) -> T:
        stamp = _stamp(self._path)
        with self._lock:
            if self._held is None or self._held[0] != stamp:
                self._held = stamp, self._new()
            return self._held[1]

    def _new(self) -> T:
        try:
            return self._read()
        except (TeraflockError, OSError) as error:
            name = os.path.basename(self._path)  # noqa: PTH119 -- see home.py
            if self._held is None:
                raise _unreadable(name, error) from error
            LOG.error("cannot read %s, the last good version stays in use: %s", name, error)
            return self._held[1]


def _stamp(path: str) -> Stamp:
    try:
        seen = os.stat(path)  # noqa: PTH116 -- see home.py
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


def _unreadable(what: str, error: Exception) -> Unavailable:
    return Unavailable(
        f"The server cannot read its {what}",
        hint="Ask the operator; the server log has the reason",
        context={"reason": str(error)},
    )
