"""The loop that copies volumes to other hosts, and removes copies that are no longer needed.

It copies volumes whose tenants asked for it. When their host is lost, `VolumeService.recover` lets the last copy take
the place of the volume. A row in `making` is written before anything is copied, and a row is `removing` before anything
is removed, so whatever a crash leaves is found. A copy in `removing` is never chosen again. This is also the state of
the disk that a copy has replaced: when its host is back, it is taken from the instance that had it, and deleted.
"""

import logging
from collections.abc import Iterable, Set
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.base.ids import new_id
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host, HostState
from teraflock.fleet.room import Room
from teraflock.instance.claims import check_snapshots_quota
from teraflock.instance.copy import store as disks
from teraflock.instance.copy.model import VolumeCopyDriver
from teraflock.instance.copy.states import CopyState
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.instance.lease import store as leases
from teraflock.instance.lease.rules import worker_for
from teraflock.instance.model import InstanceId
from teraflock.instance.volume import store
from teraflock.instance.volume.lost import count_kept
from teraflock.instance.volume.model import COPY_PREFIX, Volume, VolumeCopy
from teraflock.instance.volume.rules import copy_is_due, obsolete_copies
from teraflock.reconcile.copying import COPIES_PER_TURN, PACKED_SHARE_MAX, PackedSize, touched
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.tenant.project.store import project_of_any_organisation

LOG: Final = logging.getLogger("teraflock.reconcile")
AGAIN: Final = timedelta(minutes=5)
"""When a volume is tried again that could not be copied."""


class VolumeCopyLoop:
    def __init__(self, around: Surroundings, every: timedelta, *, worker: str = "") -> None:
        """`every` is the time between two copies of a volume. 0: make none. `worker` is the name of this process if
        there may be others, which divide the volumes among them."""
        self._around = around
        self._every = every
        self._worker = worker
        self._later: dict[str, datetime] = {}
        """When volumes whose last copy failed are tried again."""

    def turn(self) -> None:
        now = self._around.clock.now()
        with self._around.database.read() as tx:
            known = store.copies_in_all_projects(tx)
            volumes = {str(each.id): each for each in store.in_all_projects(tx)}
            alive = leases.alive(tx, now)
        for copy in obsolete_copies(known, volumes, now):
            self._around.database.write_with_locks(partial(self._mark, copy))
        with self._around.database.read() as tx:
            known = store.copies_in_all_projects(tx)
        for copy in known:
            if copy.state == CopyState.REMOVING:
                self._remove(copy)
        due = [
            each
            for each in volumes.values()
            if self._every
            and self._later.get(each.id, now) <= now
            and copy_is_due(each, [one for one in known if one.volume_id == each.id], self._every, now)
            and (not self._worker or worker_for(each.id, alive) == self._worker)
        ]
        for volume in due[:COPIES_PER_TURN]:
            try:
                self._copy(volume)
            except TeraflockError as error:
                LOG.warning("%s cannot be copied: %s", volume.id, error.sentence)
                self._later[volume.id] = now + AGAIN

    def _mark(self, copy: VolumeCopy, tx: Transaction) -> None:
        """Say that a copy is removed, unless its volume needs it by now: it may have been recovered from it."""
        volume = store.locked_in_all_projects(tx, copy.volume_id)
        volumes = {str(volume.id): volume} if volume else {}
        fresh = store.copies(tx, copy.volume_id)
        if copy.id not in [each.id for each in obsolete_copies(fresh, volumes, self._around.clock.now())]:
            return
        store.set_copy_removing(tx, copy.id)
        if volume is not None:
            count_kept(tx, volume, self._around.clock.now(), self._around.random_bytes)

    def _remove(self, copy: VolumeCopy) -> None:
        """Remove it from its host, and what is left of it at its source. If one of them does not answer, the row stays
        for the next turn. A host that was removed has nothing of ours."""
        with self._around.database.read() as tx:
            found = [fleet.host(tx, id) for id in (copy.host_id, copy.source_host_id) if id]
        hosts = [each for each in found if each is not None and each.state != HostState.GONE]
        if any(each.state == HostState.AWAY for each in hosts):
            return
        try:
            for host in hosts:
                if host.site in self._around.engines:
                    _delete(self._around.engines.at(host.site), host.name, copy.id)
        except TeraflockError as error:
            LOG.warning("the copy %s cannot be removed yet: %s", copy.id, error.sentence)
            return
        self._around.database.write(lambda tx: store.remove_copy(tx, copy.id))

    def _copy(self, volume: Volume) -> None:
        with self._around.database.read() as tx:
            host = fleet.host(tx, volume.host_id)
            near = _beside(tx, volume)
            room = target(self._around, volume, fleet.rooms(tx, self._around.policy), near)
            project = project_of_any_organisation(tx, volume.project_id)
            if host is None or room is None or project is None:
                return
            if host.state in (HostState.AWAY, HostState.GONE):
                return
            check_snapshots_quota(tx, project)
        source, to = self._around.engines.at(volume.site), self._around.engines.at(room.site)
        if not (isinstance(source, VolumeCopyDriver) and isinstance(to, VolumeCopyDriver)):
            return
        copy = self._around.database.write_with_locks(partial(self._begin, volume, host, room))
        if copy is None:
            return
        try:
            with (
                touched(self._around, partial(store.touch_copy, id=copy.id)),
                source.pack_volume(host.name, volume.disk_id, copy.id) as packed,
            ):
                pieces = PackedSize(packed.content or (), bytes_max=PACKED_SHARE_MAX * volume.size_bytes)
                to.keep_volume(room.name, copy.id, copy.disk_bytes, pieces)
        except TeraflockError:
            self._around.database.write(lambda tx: store.set_copy_removing(tx, copy.id))
            raise
        if self._around.database.write_with_locks(partial(self._finish, copy, packed.size_bytes)):
            LOG.info("%s is copied to %s: %d bytes", volume.id, room.name, packed.size_bytes)
        else:
            to.delete_volume(room.name, copy.id)  # another process removed its row: it took this one for dead

    def _begin(self, volume: Volume, host: Host, room: Room, tx: Transaction) -> VolumeCopy | None:
        """Write the row of a copy, unless another process was faster or the volume changed."""
        now = self._around.clock.now()
        fresh = store.locked_in_all_projects(tx, volume.id)
        if fresh is None or fresh.disk_id != volume.disk_id or fresh.host_id != host.id:
            return None
        if not copy_is_due(fresh, store.copies(tx, volume.id), self._every, now):
            return None
        copy = VolumeCopy(
            id=new_id(COPY_PREFIX, now, self._around.random_bytes),
            volume_id=volume.id,
            source_id=volume.disk_id,
            host_id=room.host_id,
            site=room.site,
            source_host_id=host.id,
            state=CopyState.MAKING,
            disk_bytes=fresh.made_bytes,
            made_at=now,
            touched_at=now,
        )
        store.insert_copy(tx, copy)
        return copy

    def _finish(self, copy: VolumeCopy, size_bytes: int, tx: Transaction) -> bool:
        volume = store.locked_in_all_projects(tx, copy.volume_id)
        fresh = next((each for each in store.copies(tx, copy.volume_id) if each.id == copy.id), None)
        if fresh is None:
            return False
        if fresh.state == CopyState.MAKING:
            store.set_copy_ready(tx, copy.id, min(size_bytes, copy.disk_bytes))
            if volume is not None:
                count_kept(tx, volume, self._around.clock.now(), self._around.random_bytes)
        return True


def _beside(tx: Transaction, volume: Volume) -> set[str]:
    """The hosts with copies of the instance that has the volume: of its disk, and of its other volumes."""
    if not volume.instance_id:
        return set()
    others = [each for each in store.in_all_projects(tx) if each.instance_id == volume.instance_id]
    found = [*disks.of_instance(tx, InstanceId(volume.instance_id))]
    return {str(each.host_id) for each in found if each.state == CopyState.READY} | {
        copy.host_id
        for other in others
        if other.id != volume.id
        for copy in store.copies(tx, other.id)
        if copy.state == CopyState.READY
    }


def target(
    around: Surroundings, volume: Volume, rooms: Iterable[Room], near: Set[str] = frozenset()
) -> Room | None:
    """The host for a copy: another one that can have volumes, if possible one of `near`, with the most room."""
    fit = [
        room
        for room in rooms
        if room.host_id != volume.host_id
        and room.disk_bytes >= volume.made_bytes
        and room.site in around.engines
        and around.engines.can(room.site, Capability.VOLUMES)
        and isinstance(around.engines.at(room.site), VolumeCopyDriver)
    ]
    return max(fit, key=lambda room: (room.host_id in near, room.disk_bytes, room.host_id), default=None)


def _delete(driver: ComputeDriver, host: str, id: str) -> None:
    """Delete a disk, also one that an instance still has: its volume has been recovered from a copy."""
    for seen in driver.volumes():
        if seen.volume_id == id and seen.host == host:
            for instance_id in seen.users:
                driver.detach_volume(host, instance_id, id)
    driver.delete_volume(host, id)
