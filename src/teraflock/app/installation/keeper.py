"""Restarts our own engine when it dies, while the server runs.

Invariants:
- it restarts only a daemon that we started and that nobody stopped; it never touches another engine;
- it waits between restarts as long as `pause_after` says; the pauses grow while the daemon does not stay up;
- every restart writes an event and a log line;
- `make up`, `down` and `purge` have priority: nothing is restarted while one of them runs.

Guests outlive their daemon. The drift loop checks them when it is back.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from teraflock.app.installation.locking import alone
from teraflock.app.installation.places import Places
from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, TeraflockError
from teraflock.base.events import new_event
from teraflock.drivers.lxd import daemon, veths
from teraflock.storage.database import Database
from teraflock.storage.events import record_event

LOG: Final = logging.getLogger("teraflock.engines")
PAUSE_SECONDS_MAX: Final = 300
STEADY: Final = timedelta(seconds=60)
"""After this time a daemon counts as healthy again; and this long after a restart, leftovers are removed."""
LEFT_OVER: Final = timedelta(seconds=10)
"""A pair of network interfaces that is unused for this long does not belong to a starting guest."""


def pause_after(failures: int) -> timedelta:
    """The pause after the n-th restart in a row: 1, 2, 4 … seconds, at most five minutes."""
    return timedelta(seconds=min(2 ** min(max(failures - 1, 0), 10), PAUSE_SECONDS_MAX))


class EngineKeeper:
    def __init__(
        self,
        places: Places,
        database: Database | None,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        engine: daemon.Daemon | None = None,
        answers: Callable[[], bool] | None = None,
        leftovers: Callable[[], Mapping[int, str]] = veths.leftovers,
        remove: Callable[[str], object] = veths.remove,
    ) -> None:
        """`database` gets an event for every restart. None: a joined host, which has no database."""
        self._places = places
        self._database = database
        self._clock = clock
        self._random_bytes = random_bytes
        self._engine = engine or daemon.Daemon(places.lxd)
        self._answers = answers or (lambda: daemon.answers(self._engine.socket_path))
        self._leftovers = leftovers
        self._remove = remove
        self._failures = 0
        self._restarted_at = clock.now()
        """The start of the server counts as a restart: the machine may have crashed."""
        self._first_seen: dict[int, datetime] = {}

    def turn(self) -> None:
        now = self._clock.now()
        if self._answers():
            if self._failures and now - self._restarted_at >= STEADY:
                self._failures = 0
            self._clear(now)
        elif self._may_restart(now):
            try:
                with alone(self._places):
                    self._restart(now)
            except Conflict:
                return  # `make up` or `make down` is running

    def _may_restart(self, now: datetime) -> bool:
        if not self._engine.was_started() or self._engine.pid() is not None:
            return False  # somebody stopped it, or it is still starting
        passed = now - self._restarted_at
        return not self._failures or passed >= pause_after(self._failures) or passed < timedelta()

    def _restart(self, now: datetime) -> None:
        self._failures += 1
        self._restarted_at = now
        LOG.warning("the engine died; restarting it, attempt %d", self._failures)
        try:
            self._engine.ensure()
        except TeraflockError as error:
            LOG.error("could not restart the engine: %s %s", error.sentence, dict(error.context))
            self._tell("engine.restart_failed", {"attempt": self._failures, "problem": error.sentence})
        else:
            self._tell("engine.restarted", {"attempt": self._failures})

    def _clear(self, now: datetime) -> None:
        """Remove network interfaces that the dead daemon had started to create."""
        if now - self._restarted_at > STEADY + LEFT_OVER:
            self._first_seen = {}
            return
        found = self._leftovers()
        self._first_seen = {index: self._first_seen.get(index, now) for index in found}
        for index, name in found.items():
            if now - self._first_seen[index] >= LEFT_OVER:
                LOG.warning("removing the network interfaces %s, left over from a killed engine", name)
                self._remove(name)

    def _tell(self, kind: str, details: dict[str, str | int | float | bool | None]) -> None:
        if self._database is None:
            return
        now = self._clock.now()
        event = new_event(kind, "engine", now, self._random_bytes, details)
        self._database.write(lambda tx: record_event(tx, event))
