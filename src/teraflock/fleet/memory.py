"""What a server remembers of the fleet from one launch to the next, so that not each of them reads every host.

It only suggests. Whether a host has room is looked up again under its lock, and a refusal for want of room or of a card
always comes from the database. So a memory that is out of date, or wrong because a launch was undone, costs a launch a
second look, or a host that fits a little less tightly.
"""

import threading
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import Final

from teraflock.base.clock import Clock
from teraflock.base.size import Size
from teraflock.fleet import store
from teraflock.fleet.model import Host, HostId
from teraflock.fleet.placement import Policy, Room
from teraflock.storage.database import Transaction

AGE_MAX: Final = timedelta(seconds=1)
"""Reading 500 hosts takes some ten milliseconds: so at most a hundredth of a server's time."""


class FleetMemory:
    """Of one database, with one policy; used by many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: tuple[Host, ...] = ()
        self._kinds_read_at: datetime | None = None
        self._rooms: dict[HostId, Room] = {}
        self._rooms_read_at: datetime | None = None

    def kinds(self, tx: Transaction, *, fresh: bool = False) -> tuple[Host, ...]:
        """One host of each kind."""
        now = self._clock.now()
        if fresh or _is_old(self._kinds_read_at, now):
            self._kinds, self._kinds_read_at = store.kinds_of_hosts(tx), now
        return self._kinds

    def candidates(
        self, tx: Transaction, policy: Policy, need: Size, *, limit: int, fresh: bool = False
    ) -> list[HostId]:
        """Hosts that seem to have room, those that fit tightest first. None of them: the database has none."""
        now = self._clock.now()
        if not fresh and not _is_old(self._rooms_read_at, now) and (found := self._tightest(need, limit)):
            return found
        rooms = {room.host_id: room for room in store.rooms(tx, policy)}
        with self._lock:
            self._rooms, self._rooms_read_at = rooms, now
        return self._tightest(need, limit)

    def take(self, id: HostId, need: Size) -> None:
        """A launch takes this: the next one should count with it."""
        with self._lock:
            if room := self._rooms.get(id):
                room.take(need)

    def _tightest(self, need: Size, limit: int) -> list[HostId]:
        with self._lock:
            fitting = (room for room in self._rooms.values() if room.fits(need))
            return [room.host_id for room in nsmallest(limit, fitting, key=lambda room: room.tightness(need))]


def _is_old(read_at: datetime | None, now: datetime) -> bool:
    return read_at is None or not timedelta(0) <= now - read_at < AGE_MAX
