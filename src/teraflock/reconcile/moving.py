"""The loop that creates instances again elsewhere when their host does not come back.

It moves only instances with the restart policy `elsewhere` whose host has been away for `MOVE_AFTER`. The disk is lost.
To a host of the same site it moves them only if the engine supports several copies; others refuse a second one.

The lost host may still run the old copy: only its connection to us may be cut. Therefore
- the instance gets a new address, and nobody gets the old one until the copy is removed;
- `hosts.py` removes the copy when the host answers again, before anything else is done with the host.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.fleet import store as fleet
from teraflock.fleet.card import store as cards
from teraflock.fleet.left_behind import store as left_behind
from teraflock.fleet.model import HostId
from teraflock.fleet.placement import choose, decide
from teraflock.fleet.port import store as ports
from teraflock.fleet.room import Room
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.claims import take
from teraflock.instance.driver import Capability
from teraflock.instance.model import Instance, InstanceId, Operation, Request, RestartPolicy, guest_ports
from teraflock.instance.placing import wish_terms
from teraflock.instance.rules import settled
from teraflock.instance.states import Phase, Wanted
from teraflock.network.interfaces import other_addresses
from teraflock.network.store import layouts
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
MOVE_AFTER: Final = timedelta(minutes=5)
"""A host that reboots is back sooner, with all disks."""


class MoveLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        before = self._around.clock.now() - MOVE_AFTER
        with self._around.database.read() as tx:
            found = [each for each in across.on_lost_hosts_in_all_projects(tx, before) if may_move(each)]
            rooms = fleet.rooms(tx, self._around.policy, labelled=True) if found else []
            chosen = [(each.id, elsewhere(tx, self._around, each, rooms)) for each in found]
        for id, room in chosen:
            if room and self._around.database.write(partial(self._move, id=id, host_id=room.host_id)):
                LOG.warning("%s is created again elsewhere: its host is lost", id)
                self._around.wake()

    def _move(self, tx: Transaction, id: InstanceId, host_id: HostId) -> bool:
        """Move the current row, if its host is still lost and the new one still has room."""
        now = self._around.clock.now()
        before = across.by_id_in_all_projects(tx, id)
        if before is None or before.host_id is None or not may_move(before):
            return False
        if not fleet.is_away(tx, before.host_id) or not fleet.is_unseen(tx, before.host_id, now - MOVE_AFTER):
            return False
        words = "Its host was lost, with its disk and snapshots"
        return move(tx, self._around, before, host_id, words, now)


def elsewhere(
    tx: Transaction,
    around: Surroundings,
    instance: Instance,
    rooms: Sequence[Room],
    *,
    same_site: bool = False,
) -> Room | None:
    """Choose a host for an instance that leaves its own. Takes it from the rooms. `same_site`: its old copy is removed
    first, so that every engine accepts it on another host."""
    can = same_site or around.engines.can(instance.site, Capability.SEVERAL_COPIES)
    other = [
        room for room in rooms if room.host_id != instance.host_id and (can or room.site != instance.site)
    ]
    wish = replace(instance.spec.place, spread="", pack=False, together=False)
    terms = wish_terms(tx, instance.project_id, wish, labels={}, itself=instance.id)
    if terms.is_plain:
        room = choose(other, instance.shape)
        if room:
            room.take(instance.shape)
        return room
    return next(iter(decide(other, instance.shape, 1, terms).chosen), None)


def move(
    tx: Transaction,
    around: Surroundings,
    before: Instance,
    host_id: HostId,
    words: str,
    now: datetime,
    *,
    wait: timedelta = timedelta(0),
) -> bool:
    """Give an instance another host, cards, ports and a new address, and request its launch there after `wait`. False:
    the host has no room any more."""
    rooms = fleet.rooms(tx, around.policy, only=host_id)
    if not rooms or not rooms[0].fits(before.shape) or before.address is None or before.host_id is None:
        return False
    old = tuple(each for each in (before.address, *before.more_addresses) if each)
    left_behind.note(tx, before.id, before.host_id, before.project_id, old, now)
    taken = store.taken_addresses(tx, before.project_id)
    address, *more = other_addresses(layouts(tx, before.project_id), old, taken)
    cards.release_gpus(tx, before.id)
    ports.release_ports(tx, before.id)
    held = take(tx, before.id, host_id, before.shape, guest_ports(before.access))
    there = replace(
        before, site=rooms[0].site, host_id=host_id, held=held, address=address, more_addresses=tuple(more)
    )
    after = replace(moved(there, words, now), due_at=now + wait)
    store.put(tx, before, after, now=now, random_bytes=around.random_bytes)
    return True


def may_move(instance: Instance) -> bool:
    """Whether an instance of a lost host may be created again elsewhere."""
    return instance.phase == Phase.AWAY and instance.progress is None and is_movable(instance)


def is_movable(instance: Instance) -> bool:
    """Whether its tenant allows it. An image made from an instance exists only at its own site."""
    is_asked = instance.spec.restart_policy == RestartPolicy.ELSEWHERE and instance.wanted == Wanted.RUNNING
    return is_asked and bool(instance.spec.recipe) and instance.spec.rental is None


def moved(instance: Instance, words: str, now: datetime) -> Instance:
    notice = (
        f"{words}. At {now:%Y-%m-%d %H:%M} UTC it was created again elsewhere"
        f" from the image `{instance.image}`, with the address {instance.address}"
    )
    return settled(replace(instance, request=Request(operation=Operation.LAUNCH), notice=notice, due_at=now))
