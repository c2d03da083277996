"""A cache of free room on hosts, so that not every launch reads every host.

It only suggests hosts. A launch checks the room again under the lock of the host, and only the database decides that
there is no room. An outdated cache, or one that counts a launch that was undone, costs a launch a second look or a
host that fits less tightly.
"""

import threading
from bisect import bisect_left, insort
from datetime import datetime, timedelta
from typing import Final

from teraflock.base.clock import Clock
from teraflock.base.size import Size
from teraflock.fleet import store
from teraflock.fleet.model import Host, HostId
from teraflock.fleet.placement import Policy
from teraflock.fleet.room import Room
from teraflock.storage.database import Transaction

AGE_MAX: Final = timedelta(seconds=1)
"""Reading 500 hosts takes about ten milliseconds, so this is at most a hundredth of a server's time."""

ORDERS_MAX: Final = 64
"""Sizes that launches have asked for since the last reading. Most ask for the same few."""


class FleetMemory:
    """For one database and one policy. Safe to use from many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: tuple[Host, ...] = ()
        self._kinds_read_at: datetime | None = None
        self._rooms: dict[HostId, Room] = {}
        self._rooms_read_at: datetime | None = None
        self._orders: dict[Size, list[tuple[float, int, int, int, HostId]]] = {}
        """For each size, the tightness of all rooms that fit it, sorted."""

    def kinds(self, tx: Transaction, *, fresh: bool = False) -> tuple[Host, ...]:
        """One host of each kind."""
        now = self._clock.now()
        if fresh or _is_old(self._kinds_read_at, now):
            self._kinds, self._kinds_read_at = store.kinds_of_hosts(tx), now
        return self._kinds

    def candidates(
        self, tx: Transaction, policy: Policy, need: Size, *, limit: int, fresh: bool = False
    ) -> list[HostId]:
        """Hosts that seem to have room, tightest fit first. An empty list means that the database has none."""
        now = self._clock.now()
        if not fresh and not _is_old(self._rooms_read_at, now) and (found := self._tightest(need, limit)):
            return found
        rooms = {room.host_id: room for room in store.rooms(tx, policy)}
        with self._lock:
            self._rooms, self._rooms_read_at, self._orders = rooms, now, {}
        return self._tightest(need, limit)

    def take(self, id: HostId, need: Size) -> None:
        """Subtract what a launch takes, so that the next launch sees it."""
        with self._lock:
            room = self._rooms.get(id)
            if room is None:
                return
            for size, order in self._orders.items():
                if room.fits(size):
                    del order[bisect_left(order, room.tightness(size))]
            room.take(need)
            for size, order in self._orders.items():
                if room.fits(size):
                    insort(order, room.tightness(size))

    def _tightest(self, need: Size, limit: int) -> list[HostId]:
        with self._lock:
            order = self._orders.get(need)
            if order is None:
                if len(self._orders) >= ORDERS_MAX:
                    self._orders.clear()
                order = sorted(room.tightness(need) for room in self._rooms.values() if room.fits(need))
                self._orders[need] = order
            return [host_id for *_, host_id in order[:limit]]


def _is_old(read_at: datetime | None, now: datetime) -> bool:
    return read_at is None or not timedelta(0) <= now - read_at < AGE_MAX
