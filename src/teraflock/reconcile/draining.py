"""The loop that empties drained hosts at their deadline.

Before the deadline, the tenants of instances that will move get a notice. At the deadline, each of these instances is
stopped, its disk is copied to another host, which it then gets in one transaction, and the guest on the old host is
removed. If the process dies in between, `drift.py` starts the stopped instance again or removes it from the old host.
Instances that may not move stay.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.fleet import store as fleet
from teraflock.fleet.left_behind import store as left_behind
from teraflock.fleet.model import HostId, HostState
from teraflock.fleet.room import Room
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.copy.model import DiskCopy
from teraflock.instance.copy.rules import is_movable
from teraflock.instance.driver import Capability, ComputeDriver, Handle, Seen, Sighting
from teraflock.instance.events import notice_of
from teraflock.instance.lookup import is_at_rest
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.states import Phase
from teraflock.reconcile.copying import copy_disk
from teraflock.reconcile.drift import remove
from teraflock.reconcile.moving import copies_removed, elsewhere, move
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

LAUNCH_WAIT: Final = timedelta(minutes=10)
"""How long a launch waits for the removal of the old copy, if its engine accepts only one."""
LOG: Final = logging.getLogger("teraflock.reconcile")


class DrainLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._told: set[tuple[str, datetime]] = set()
        """Whom this process told about which deadline: a tenant may have acknowledged it."""

    def turn(self) -> None:
        now = self._around.clock.now()
        with self._around.database.read() as tx:
            hosts = fleet.draining(tx)
            there = {host[0]: across.on_host_in_all_projects(tx, host[0]) for host in hosts}
            left = left_behind.on_hosts(tx, [host[0] for host in hosts])
        for id, site, name, at in hosts:
            leaving = [each for each in there[id] if may_leave(each)]
            if now < at:
                self._tell(leaving, at)
            elif site in self._around.engines:
                driver = self._around.engines.at(site)
                for copy in left:
                    if copy[1] == id:
                        self._alone(name, partial(self._remove, driver, name, copy))
                self._empty(driver, name, leaving)

    def _alone(self, host: str, act: Callable[[], None]) -> None:
        """Do it. If the engine cannot, the next turn tries again."""
        try:
            act()
        except TeraflockError as error:
            LOG.warning("the drained host %s: %s", host, error.sentence)

    def _tell(self, leaving: list[Instance], at: datetime) -> None:
        notice = leaving_notice(at)
        for each in leaving:
            if each.notice != notice and (each.id, at) not in self._told:
                self._told.add((each.id, at))
                self._around.database.write(partial(self._note, id=each.id, notice=notice, at=at))

    def _note(self, tx: Transaction, id: InstanceId, notice: str, at: datetime) -> None:
        before = across.by_id_in_all_projects(tx, id)
        if before is None or not may_leave(before) or before.notice == notice:
            return
        now, random_bytes = self._around.clock.now(), self._around.random_bytes
        store.put(tx, before, replace(before, notice=notice), now=now, random_bytes=random_bytes)
        record_event(tx, notice_of("instance.leaving", before, now, random_bytes, leaving_at=at.isoformat()))

    def _empty(self, driver: ComputeDriver, host: str, leaving: list[Instance]) -> None:
        if not leaving:
            return
        with self._around.database.read() as tx:
            rooms = fleet.rooms(tx, self._around.policy, labelled=True)
            chosen = [(each, elsewhere(tx, self._around, each, rooms, same_site=True)) for each in leaving]
        for instance, room in chosen:
            if room is not None:
                self._alone(host, partial(self._leave, driver, host, instance, room))

    def _leave(self, driver: ComputeDriver, host: str, instance: Instance, room: Room) -> None:
        handle = Handle(instance.id, host)
        driver.hide(handle)
        driver.stop(handle, force=False)
        copy = self._copied(instance, room)
        moves = partial(self._move, id=instance.id, host_id=room.host_id, copy=copy)
        if self._around.database.write(moves):
            LOG.info("%s leaves the drained host %s", instance.id, host)
            self._remove(driver, host, (instance.id, instance.host_id or ""))

    def _copied(self, instance: Instance, room: Room) -> DiskCopy | None:
        """Copy the disk of a stopped instance to its new host. None: that is not possible, and the disk is lost. If an
        engine does not answer, it is tried again."""
        with self._around.database.read() as tx:
            host = fleet.host(tx, instance.host_id or "")
        try:
            return copy_disk(self._around, instance, host, room) if host else None
        except Unavailable:
            raise
        except TeraflockError as error:
            LOG.warning("the disk of %s cannot be copied: %s", instance.id, error.sentence)
            return None

    def _remove(self, driver: ComputeDriver, host: str, copy: tuple[str, str]) -> None:
        """Remove the old copy of an instance, and let its launch on the other host begin."""
        remove(driver, Sighting(instance_id=InstanceId(copy[0]), host=host, seen=Seen.STOPPED))
        self._around.database.write(partial(copies_removed, around=self._around, copies=[copy]))
        self._around.wake()

    def _move(self, tx: Transaction, id: InstanceId, host_id: HostId, copy: DiskCopy | None) -> bool:
        now, before = self._around.clock.now(), across.by_id_in_all_projects(tx, id)
        if before is None or before.host_id is None or not may_leave(before):
            return False
        host = fleet.host(tx, before.host_id)
        if host is None or host.state != HostState.DRAINING or host.drain_at is None or host.drain_at > now:
            return False
        words = (
            "The operator drained its host"
            if copy
            else "The operator drained its host. Its disk was not kept"
        )
        wait = LAUNCH_WAIT if self._excludes(tx, before, host_id) else timedelta(0)
        return move(tx, self._around, before, host_id, words, now, wait=wait, copy=copy)

    def _excludes(self, tx: Transaction, instance: Instance, host_id: HostId) -> bool:
        """Whether the engine refuses an instance on its new host until the old copy is removed."""
        host = fleet.host(tx, host_id)
        can = self._around.engines.can(instance.site, Capability.SEVERAL_COPIES)
        return not can and host is not None and host.site == instance.site


def may_leave(instance: Instance) -> bool:
    return instance.phase == Phase.RUNNING and is_at_rest(instance) and is_movable(instance)


def leaving_notice(at: datetime) -> str:
    return (
        f"The operator drains its host. At {at:%Y-%m-%d %H:%M} UTC it is stopped and started again on another host,"
        " with a copy of its disk and another address"
    )
