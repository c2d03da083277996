"""The loop that creates instances again elsewhere when their host does not come back.

It moves only instances with the restart policy `elsewhere` whose host has been away for `MOVE_AFTER`, and
only to another site: an engine may still have the old copy and refuse a second one. The disk is lost. When
the old site answers again, `drift.py` removes its copy.
"""

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.fleet import store as fleet
from teraflock.fleet.card import store as cards
from teraflock.fleet.placement import choose
from teraflock.fleet.port import store as ports
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.claims import take
from teraflock.instance.model import Instance, InstanceId, Operation, Request, RestartPolicy, guest_ports
from teraflock.instance.rules import settled
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
MOVE_AFTER: Final = timedelta(minutes=5)
"""A host that reboots is back sooner, with all disks."""


class MoveLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        now = self._around.clock.now()
        with self._around.database.read() as tx:
            found = across.on_lost_hosts_in_all_projects(tx, now - MOVE_AFTER)
        for instance in found:
            if may_move(instance) and self._around.database.write(partial(self._move, id=instance.id)):
                LOG.warning("%s is created again elsewhere: its host is lost", instance.id)
                self._around.wake()

    def _move(self, tx: Transaction, id: InstanceId) -> bool:
        """Move the current row. Return whether there was room."""
        now = self._around.clock.now()
        lost = {each.id: each for each in across.on_lost_hosts_in_all_projects(tx, now - MOVE_AFTER)}
        if id not in lost or not may_move(lost[id]):
            return False
        before = lost[id]
        rooms = [each for each in fleet.rooms(tx, self._around.policy) if each.site != before.site]
        room = choose(rooms, before.shape)
        if room is None:
            return False
        cards.release_gpus(tx, before.id)
        ports.release_ports(tx, before.id)
        held = take(tx, before.id, room.host_id, before.shape, guest_ports(before.access))
        after = moved(replace(before, site=room.site, host_id=room.host_id, held=held), now)
        store.put(tx, before, after, now=now, random_bytes=self._around.random_bytes)
        return True


def may_move(instance: Instance) -> bool:
    """Check the image: one made from an instance exists only at its own site."""
    is_asked = instance.spec.restart_policy == RestartPolicy.ELSEWHERE and instance.wanted == Wanted.RUNNING
    at_rest = instance.phase == Phase.AWAY and instance.progress is None
    return is_asked and at_rest and bool(instance.spec.recipe) and instance.spec.rental is None


def moved(instance: Instance, now: datetime) -> Instance:
    notice = (
        f"Its host was lost, with its disk and snapshots. At {now:%Y-%m-%d %H:%M} UTC it was created again elsewhere"
        f" from the image `{instance.image}`"
    )
    return settled(replace(instance, request=Request(operation=Operation.LAUNCH), notice=notice, due_at=now))
