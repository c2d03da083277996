"""The loop that copies the disks of instances to other hosts, and removes copies that are no longer needed.

It copies instances with the restart policy `elsewhere`. When their host is lost, `moving.py` creates them again from
the last copy. A row in `making` is written before anything is copied, so whatever a crash leaves is found and removed.
While a process works on a copy it says so in the row; another process removes what was not touched for a while.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import TeraflockError
from teraflock.base.ids import new_id
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host, HostId
from teraflock.fleet.room import Room
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.claims import check_snapshots_quota
from teraflock.instance.copy import store as copies
from teraflock.instance.copy.model import CopyDriver, DiskCopy
from teraflock.instance.copy.rules import is_due, obsolete
from teraflock.instance.copy.states import CopyState
from teraflock.instance.driver import Capability, Handle
from teraflock.instance.engine_errors import EngineRefused
from teraflock.instance.lease import store as leases
from teraflock.instance.lease.rules import worker_for
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.snapshot.store import kept_bytes
from teraflock.instance.states import Phase
from teraflock.instance.volume import store as volumes
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.tenant.project.store import project_of_any_organisation

LOG: Final = logging.getLogger("teraflock.reconcile")
PACKED_SHARE_MAX: Final = 2
"""A disk is packed and compressed, so it is never this many times as large."""
COPIES_PER_TURN: Final = 4
TOUCH_SECONDS: Final = 15.0


class CopyLoop:
    def __init__(self, around: Surroundings, every: timedelta, *, worker: str = "") -> None:
        """`every` is the time between two copies of an instance. 0: make none. `worker` is the name of this process if
        there may be others, which divide the instances among them."""
        self._around = around
        self._every = every
        self._worker = worker

    def turn(self) -> None:
        now = self._around.clock.now()
        with self._around.database.read() as tx:
            known = copies.all_in_all_projects(tx)
            running = across.running_elsewhere_in_all_projects(tx) if self._every else ()
            alive = leases.alive(tx, now)
            removed = fleet.removed(tx)
            copied = {each.disk_id for each in volumes.in_all_projects(tx) if each.copied}
            instances = {str(each.id): each for each in running}
            for id in {each.instance_id for each in known} - instances.keys():
                found = across.by_id_in_all_projects(tx, id)
                if found is not None:
                    instances[id] = found
        for copy in obsolete(known, instances, now, removed):
            drop(self._around, copy)
        due = [
            each
            for each in running
            if is_due(
                each,
                [one for one in known if one.instance_id == each.id],
                self._every,
                now,
                with_volumes={mount.id for mount in each.volumes} <= copied,
            )
            and (not self._worker or worker_for(each.id, alive) == self._worker)
        ]
        for instance in due[:COPIES_PER_TURN]:
            self._copy(instance)

    def _copy(self, instance: Instance) -> None:
        try:
            with self._around.database.read() as tx:
                host = fleet.host(tx, instance.host_id or "")
                room = target(self._around, instance, fleet.rooms(tx, self._around.policy))
                project = project_of_any_organisation(tx, instance.project_id)
                if host is None or room is None or project is None:
                    return
                check_snapshots_quota(tx, project)
            copy_disk(self._around, instance, host, room)
        except TeraflockError as error:
            LOG.warning("%s cannot be copied: %s", instance.id, error.sentence)


def target(around: Surroundings, instance: Instance, rooms: Iterable[Room]) -> Room | None:
    """The host for a copy: one that could run the instance, with the most room on its disk."""
    several = around.engines.can(instance.site, Capability.SEVERAL_COPIES)
    fit = [
        room
        for room in rooms
        if room.host_id != instance.host_id
        and (several or room.site != instance.site)
        and room.disk_bytes > 0
        and room.site in around.engines
        and isinstance(around.engines.at(room.site), CopyDriver)
    ]
    return max(fit, key=lambda room: (room.fits(instance.shape), room.disk_bytes, room.host_id), default=None)


def copy_disk(around: Surroundings, instance: Instance, host: Host, room: Room) -> DiskCopy | None:
    """Copy the disk of an instance on `host` to another host. None: one of the engines cannot do it."""
    source, to = around.engines.at(instance.site), around.engines.at(room.site)
    if not (isinstance(source, CopyDriver) and isinstance(to, CopyDriver)):
        return None
    now = around.clock.now()
    copy = DiskCopy(
        id=new_id("cpy", now, around.random_bytes),
        instance_id=instance.id,
        host_id=HostId(room.host_id),
        site=room.site,
        source_site=instance.site,
        state=CopyState.MAKING,
        made_at=now,
        touched_at=now,
    )
    around.database.write(lambda tx: copies.insert(tx, copy))
    try:
        with (
            touched(around, partial(copies.touch, id=copy.id)),
            source.pack_disk(Handle(instance.id, host.name), copy.id) as packed,
        ):
            size = PackedSize(packed.content or (), bytes_max=PACKED_SHARE_MAX * instance.shape.disk_bytes)
            to.keep_image(copy.id, size)
    except TeraflockError:
        drop(around, copy)
        raise
    around.database.write(lambda tx: _finish(tx, around, copy, size.bytes))
    LOG.info("%s is copied to %s: %d bytes", instance.id, room.name, size.bytes)
    return copy


def drop(around: Surroundings, copy: DiskCopy) -> None:
    """Remove a copy, also an incomplete one. If an engine does not answer, the row stays for the next turn."""
    try:
        for site in {copy.site, copy.source_site} if copy.state == CopyState.MAKING else {copy.site}:
            if site in around.engines:
                around.engines.at(site).delete_image(copy.id)
    except TeraflockError as error:
        LOG.warning("the copy %s cannot be removed yet: %s", copy.id, error.sentence)
        return

    def work(tx: Transaction) -> None:
        copies.remove(tx, copy.id)
        _count(tx, around, copy.instance_id)

    around.database.write(work)


def _finish(tx: Transaction, around: Surroundings, copy: DiskCopy, size_bytes: int) -> None:
    copies.set_ready(tx, copy.id, size_bytes)
    _count(tx, around, copy.instance_id)


def _count(tx: Transaction, around: Surroundings, id: InstanceId) -> None:
    """Write the size of its copies into the instance: with its snapshots, they are part of its bill."""
    before = across.by_id_in_all_projects(tx, id)
    if before is None or before.phase == Phase.GONE:
        return
    kept = kept_bytes(tx, id)
    if before.held.snapshots_bytes != kept:
        after = replace(before, held=replace(before.held, snapshots_bytes=kept))
        store.put(tx, before, after, now=around.clock.now(), random_bytes=around.random_bytes)


class PackedSize:
    """Counts the bytes of a packed disk on their way. A host that sends more than a disk holds fills no other host."""

    def __init__(self, pieces: Iterable[bytes], *, bytes_max: int) -> None:
        self._pieces = pieces
        self._bytes_max = bytes_max
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.bytes += len(piece)
            if self.bytes > self._bytes_max:
                raise EngineRefused("The packed disk is larger than the disk")
            yield piece


@contextmanager
def touched(around: Surroundings, touch: Callable[..., None]) -> Iterator[None]:
    """Say in the row, from time to time, that this process works on the copy: `touch(tx, now=…)`."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(TOUCH_SECONDS):
            around.database.write(lambda tx: touch(tx, now=around.clock.now()))

    thread = threading.Thread(target=work, name="copy", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
