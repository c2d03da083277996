"""The loop that starts queued launches when there is room.

    load    waiting launches of all projects, free room, time limits of running instances, recent use of each project
    decide  `instance/queue/rules.py`: which launches start, and which hosts are kept free for the next one
    apply   write the reservation; start each launch in a transaction of its own, which checks everything again

Several servers may run it: a launch is locked and checked to be waiting before it starts.
"""

from datetime import datetime, timedelta
from typing import Final

from teraflock.fleet.reservation import store as reservations
from teraflock.instance.queue import store
from teraflock.instance.queue.service import KEPT_FOR, QueueService
from teraflock.reconcile.surroundings import Surroundings

BLOCKED_FOR: Final = timedelta(seconds=10)
"""How long a launch is left out after it fitted but did not start, for example because of a quota: it must not take the
room of those behind it."""
ROUNDS_MAX: Final = 3
"""A turn decides again without the launches that did not start, this many times at most."""
CLEAN_AFTER: Final = timedelta(hours=1)


class QueueLoop:
    def __init__(self, around: Surroundings, queue: QueueService) -> None:
        self._around = around
        self._queue = queue
        self._blocked: dict[str, datetime] = {}
        self._clean_at = around.clock.now()

    def turn(self) -> None:
        now = self._around.clock.now()
        self._blocked = {id: until for id, until in self._blocked.items() if now < until}
        for _ in range(ROUNDS_MAX):
            if not self._round():
                break
        if now >= self._clean_at:
            self._clean_at = now + CLEAN_AFTER
            self._around.database.write(lambda tx: store.forget_in_all_projects(tx, now - KEPT_FOR))

    def _round(self) -> bool:
        """Decide and apply once. Return whether some launches did not start although they should have fitted."""
        with self._around.database.read() as tx:
            if not store.is_any_waiting_in_all_projects(tx) and not reservations.reserved(tx):
                return False
            look = self._queue.look(tx, skip=self._blocked)
        turn = look.turn()
        if dict.fromkeys(turn.reserved, turn.reserved_for) != look.kept:
            self._around.database.write(lambda tx: reservations.reserve(tx, turn.reserved_for, turn.reserved))
        starts = (*turn.starts, *look.hopeless)
        failed = [start.id for start in starts if not self._queue.start(start)]
        if len(failed) < len(starts):
            self._around.wake()
        until = look.now + BLOCKED_FOR
        self._blocked |= dict.fromkeys(failed, until)
        return bool(failed)
