"""The loop that creates instances again elsewhere when their host does not come back.

It moves only instances with the restart policy `elsewhere` whose host has been away for `MOVE_AFTER`. They start from
the last copy of their disk (`copying.py`) at the site that has it. If there is no copy, the disk is lost. To a host of
the same site it moves them only if the engine supports several copies; others refuse a second one. An instance with
volumes goes to the host that has copies of all of them, which take their place; without such a host it waits. An
operation that waits for the lost host is given up: its disk is lost, too. That includes a launch on a host that was
lost before anybody noticed it.

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
from teraflock.image import store as images
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.claims import take
from teraflock.instance.copy import store as copies
from teraflock.instance.copy.model import DiskCopy
from teraflock.instance.copy.rules import best, is_movable
from teraflock.instance.driver import Capability
from teraflock.instance.join.losing import LOST_AFTER
from teraflock.instance.lease import store as leases
from teraflock.instance.model import Instance, InstanceId, Operation, Request, guest_ports
from teraflock.instance.placing import wish_terms
from teraflock.instance.rules import lost, settled, withdrawn
from teraflock.instance.states import LOST_WITH_HOST
from teraflock.instance.volume import store as volumes
from teraflock.instance.volume.lost import copies_that_follow, recovered
from teraflock.instance.volume.model import VolumeMount
from teraflock.network.interfaces import other_addresses
from teraflock.network.store import layouts
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
MOVE_AFTER: Final = LOST_AFTER
"""A host that reboots is back sooner, with all disks."""
WAIT_FOR_COPY: Final = timedelta(hours=1)
"""How long an instance waits for room where the copy of its disk is. Then it starts from its image."""


class MoveLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        before = self._around.clock.now() - MOVE_AFTER
        with self._around.database.read() as tx:
            found = [each for each in across.on_lost_hosts_in_all_projects(tx, before) if may_move(each)]
            rooms = fleet.rooms(tx, self._around.policy, labelled=True) if found else []
            chosen = [(each.id, *self._chosen(tx, each, rooms)) for each in found]
        for id, room, copy in chosen:
            if room and self._around.database.write(
                partial(self._move, id=id, host_id=room.host_id, copy=copy)
            ):
                LOG.warning("%s is created again elsewhere: its host is lost", id)
                self._around.wake()

    def _chosen(
        self, tx: Transaction, instance: Instance, rooms: Sequence[Room]
    ) -> tuple[Room | None, DiskCopy | None]:
        """Where an instance goes, and the copy that it starts from. Wait for room where the copy is."""
        copy = best(copies.of_instance(tx, instance.id))
        if instance.volumes:
            follow = copies_that_follow(tx, instance)
            if follow is None or (copy is not None and copy.site != follow[0].site):
                return None, None
            rooms = [room for room in rooms if room.host_id == follow[0].host_id]
            return elsewhere(tx, self._around, instance, rooms), copy
        if copy is None:
            return elsewhere(tx, self._around, instance, rooms), None
        there = [room for room in rooms if room.site == copy.site]
        room = elsewhere(tx, self._around, instance, there)
        since = self._around.clock.now() - WAIT_FOR_COPY
        if room is None and fleet.is_unseen(tx, instance.host_id or "", since):
            return elsewhere(tx, self._around, instance, rooms), None
        return room, copy

    def _move(self, tx: Transaction, id: InstanceId, host_id: HostId, copy: DiskCopy | None) -> bool:
        """Move the current row, if its host is still lost and the new one still has room."""
        now = self._around.clock.now()
        before = across.by_id_in_all_projects(tx, id)
        if before is None or before.host_id is None or not may_move(before):
            return False
        if not fleet.is_away(tx, before.host_id) or not fleet.is_unseen(tx, before.host_id, now - MOVE_AFTER):
            return False
        if copy is not None and copy not in copies.of_instance(tx, id):
            return False
        words = "Its host was lost" if copy else "Its host was lost, with its disk and snapshots"
        if not before.volumes:
            return move(tx, self._around, before, host_id, words, now, copy=copy)
        follow = copies_that_follow(tx, before)
        if follow is None or any(each.host_id != host_id for each in follow):
            return False
        words += (
            f". Its volumes are as they were at {min(each.made_at for each in follow):%Y-%m-%d %H:%M} UTC"
        )
        mounts = tuple(
            replace(mount, id=each.id, host_id=host_id)
            for mount, each in zip(before.volumes, follow, strict=True)
        )
        if not move(tx, self._around, before, host_id, words, now, copy=copy, mounts=mounts):
            return False
        for each in follow:
            volume = volumes.by_id_in_all_projects(tx, each.volume_id)
            assert volume is not None, "its copy was found in the same transaction"
            recovered(tx, volume, each, now, self._around.random_bytes)
        return True


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
    copy: DiskCopy | None = None,
    mounts: tuple[VolumeMount, ...] = (),
) -> bool:
    """Give an instance another host, cards, ports and a new address, and request its launch there after `wait`, from a
    copy of its disk if there is one. False: the host has no room any more."""
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
        withdrawn(
            lost(before)
        ),  # only its old host needed its cards, and it runs nowhere until it is launched
        site=rooms[0].site,
        host_id=host_id,
        held=held,
        address=address,
        more_addresses=tuple(more),
        volumes=mounts,
    )
    after = replace(moved(there, words, now, copy), due_at=now + wait)
    store.put(tx, before, after, now=now, random_bytes=around.random_bytes)
    leases.take_away(tx, before.id)
    images.fail_unmade(tx, before.id, "Its instance lost its disk before it was made")
    return True


def copies_removed(tx: Transaction, around: Surroundings, copies: Sequence[tuple[str, str]]) -> None:
    """Forget copies that were removed from the old hosts of instances, and begin launches that waited for that."""
    left_behind.forget(tx, copies)
    now = around.clock.now()
    for instance_id, _ in copies:
        before = across.by_id_in_all_projects(tx, InstanceId(instance_id))
        if before is not None and before.request and before.progress is None and before.due_at > now:
            due = replace(before, due_at=now)
            store.put(tx, before, due, now=now, random_bytes=around.random_bytes)


def may_move(instance: Instance) -> bool:
    """Whether an instance of a lost host may be created again elsewhere. One that is starting is waiting for it."""
    return instance.phase in LOST_WITH_HOST and is_movable(instance, with_volumes=True)


def moved(instance: Instance, words: str, now: datetime, copy: DiskCopy | None) -> Instance:
    source = f"from the image `{instance.image}`"
    if copy is not None:
        source = f"from the copy of its disk of {copy.made_at:%Y-%m-%d %H:%M} UTC"
    notice = (
        f"{words}. At {now:%Y-%m-%d %H:%M} UTC it was created again elsewhere"
        f" {source}, with the address {instance.address}"
    )
    request = Request(operation=Operation.LAUNCH, subject=copy.id if copy else "")
    given_up = replace(instance, progress=None, problem="", problem_operator="")
    return settled(replace(given_up, request=request, notice=notice, due_at=now))
