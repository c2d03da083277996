"""Volumes whose host is lost: recovered from a copy, or ended."""

from collections.abc import Callable
from datetime import datetime

from msgspec.structs import replace

from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host, HostState
from teraflock.instance.copy.states import CopyState
from teraflock.instance.model import Instance
from teraflock.instance.volume import store
from teraflock.instance.volume.events import record_held
from teraflock.instance.volume.model import Volume, VolumeCopy
from teraflock.instance.volume.rules import best_copy, copies_to_follow
from teraflock.storage.database import Transaction


def is_lost(tx: Transaction, host_id: str) -> bool:
    """Whether a host does not answer, or was removed."""
    host = fleet.host(tx, host_id)
    return host is None or host.state in (HostState.AWAY, HostState.GONE)


def recovered(
    tx: Transaction, volume: Volume, copy: VolumeCopy, now: datetime, random_bytes: Callable[[int], bytes]
) -> Volume:
    """Let a copy take the place of a volume on a lost host. Its snapshots are lost.

    The disk on the lost host has another id, so nothing attaches it again. It is removed when the host is back.
    """
    lost = VolumeCopy(
        id=volume.disk_id,
        volume_id=volume.id,
        source_id="",
        host_id=volume.host_id,
        site=volume.site,
        state=CopyState.REMOVING,
        disk_bytes=volume.made_bytes,
        made_at=now,
        touched_at=now,
    )
    store.insert_copy(tx, lost)
    store.remove_copy(tx, copy.id)
    store.remove_snapshots(tx, volume.id)
    after = replace(
        volume,
        disk_id=copy.id,
        site=copy.site,
        host_id=copy.host_id,
        made_bytes=copy.disk_bytes,
        restore_from="",
        problem="",
    )
    store.put(tx, after)
    count_kept(tx, after, now, random_bytes)
    return after


def count_kept(tx: Transaction, volume: Volume, now: datetime, random_bytes: Callable[[int], bytes]) -> None:
    """Write the size of its snapshots and copies into a volume: they are part of its bill."""
    kept = store.kept_bytes(tx, volume.id)
    if kept != volume.snapshots_bytes and not volume.deleting:
        after = replace(volume, snapshots_bytes=kept, sequence=volume.sequence + 1)
        store.put(tx, after)
        record_held(tx, after, now, random_bytes)


def copies_that_follow(tx: Transaction, instance: Instance) -> tuple[VolumeCopy, ...] | None:
    """The copies from which all volumes of an instance can be recovered, on one host that answers. None: none."""
    known = {each.disk_id: each for each in store.of_instance_in_all_projects(tx, instance.id)}
    kept = {str(each.id): store.copies(tx, each.id) for each in known.values()}
    found = copies_to_follow(instance.volumes, known, kept)
    return None if found is None or is_lost(tx, found[0].host_id) else found


def recover_or_end(
    tx: Transaction, volume: Volume, host: Host, now: datetime, random_bytes: Callable[[int], bytes]
) -> bool:
    """Take a volume from a host that will never return. Return whether a copy takes its place. Otherwise it is lost,
    and charged until its host was last seen."""
    free = replace(volume, instance_id="", path="", detaching=False)
    copy = None if volume.deleting else best_copy(volume, store.copies(tx, volume.id))
    if copy is not None and not is_lost(tx, copy.host_id):
        recovered(tx, free, copy, now, random_bytes)
        return True
    if not volume.deleting:
        ended = replace(free, deleting=True, sequence=volume.sequence + 1)
        record_held(tx, ended, now, random_bytes, ends=True, until=min(now, host.seen_at))
    store.remove(tx, volume.id)
    return False
