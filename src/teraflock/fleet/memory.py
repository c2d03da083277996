"""A cache of free room on hosts, so that not every launch reads every host.

It only suggests hosts. A launch checks the room again under the lock of the host, and only the database decides that
there is no room. An outdated cache, or one that counts a launch that was undone, costs a launch a second look or a
host that fits less tightly.
"""

import threading
from bisect import bisect_left, insort
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.size import Size
from teraflock.fleet import store
from teraflock.fleet.model import Host, HostId
from teraflock.fleet.placement import Policy
from teraflock.fleet.room import Room
from teraflock.storage.database import Transaction

AGE_MAX: Final = timedelta(seconds=1)
AGE_READINGS: Final = 20
"""It may also be as old as this many readings take, so that they take at most a twentieth of a server's time."""

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
        self._age_max = AGE_MAX
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
        if not fresh and self._is_recent() and (found := self._tightest(need, limit)):
            return found
        self._read(tx, policy)
        return self._tightest(need, limit)

    def candidates_for_many(self, tx: Transaction, policy: Policy, need: Size, count: int) -> list[HostId]:
        """A host for each of `count` instances, as `choose_many` chooses them. Empty: there are no such hosts."""
        if self._is_recent() and (found := self._chosen(need, count)):
            return found
        self._read(tx, policy)
        return self._chosen(need, count)

    def forget(self) -> None:
        """Read the rooms again before the next launch: they are not as the last one expected."""
        self._rooms_read_at = None

    def _is_recent(self) -> bool:
        return not _is_old(self._rooms_read_at, self._clock.now(), self._age_max)

    def _read(self, tx: Transaction, policy: Policy) -> None:
        now = self._clock.now()
        rooms = {room.host_id: room for room in store.rooms(tx, policy)}
        with self._lock:
            self._rooms, self._rooms_read_at, self._orders = rooms, now, {}
            self._age_max = max(AGE_MAX, AGE_READINGS * (self._clock.now() - now))

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
            return [host_id for *_, host_id in self._ordered(need)[:limit]]

    def _chosen(self, need: Size, count: int) -> list[HostId]:
        chosen: list[HostId] = []
        with self._lock:
            left = iter(self._ordered(need))
            begun: list[tuple[tuple[float, int, int, int, HostId], Room]] = []
            """Hosts that have some of the instances and room for more."""
            following = next(left, None)
            while len(chosen) < count and (begun or following):
                if following and not (begun and begun[0][0] < following):
                    room = self._rooms[following[-1]]
                    room = replace(room, free_gpus=dict(room.free_gpus))
                    following = next(left, None)
                else:
                    _, room = heappop(begun)
                room.take(need)
                chosen.append(room.host_id)
                if room.fits(need):
                    heappush(begun, (room.tightness(need), room))
        return chosen if len(chosen) == count else []

    def _ordered(self, need: Size) -> list[tuple[float, int, int, int, HostId]]:
        order = self._orders.get(need)
        if order is None:
            if len(self._orders) >= ORDERS_MAX:
                self._orders.clear()
            order = sorted(room.tightness(need) for room in self._rooms.values() if room.fits(need))
            self._orders[need] = order
        return order


def _is_old(read_at: datetime | None, now: datetime, age_max: timedelta = AGE_MAX) -> bool:
    return read_at is None or not timedelta(0) <= now - read_at < age_max
