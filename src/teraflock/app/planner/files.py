"""What the planner reads in the home folder, as a server needs it: kept open, and read again when it changes.

What holds: a tenant never sees a path of the server. What cannot be read is logged; the last good value stays in use,
and where there is none, the request is answered with `unavailable`.
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
    """The planner's part of one home folder. For all threads of a process."""

    def __init__(self, home: str, clock: Clock) -> None:
        self._local = Local(clock, home)
        self._opening = threading.Lock()
        self._rates = _Kept(f"{home}/{RATES_NAME}", lambda: Local(clock, home).rates)
        self._cards = _Kept[Sequence[Card]](f"{home}/{CARDS_NAME}", lambda: tuple(read_own_cards(home)))
        self._servers = _Kept[Sequence[Server]](f"{home}/{FILE_NAME}", lambda: tuple(read_servers(home)))

    def database(self) -> Database:
        """The offers. Opened when it is first needed: the first time, the shipped offers are put into it."""
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


class _Kept(Generic[T]):
    """What a file says, read again when the file is another one."""

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
            LOG.error("%s cannot be read, what it said before stays in use: %s", name, error)
            return self._held[1]


def _stamp(path: str) -> Stamp:
    try:
        seen = os.stat(path)  # noqa: PTH116 -- see home.py
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


def _unreadable(what: str, error: Exception) -> Unavailable:
    return Unavailable(
        f"The server cannot read its {what} now",
        hint="The operator finds the reason in the log",
        context={"reason": str(error)},
    )
