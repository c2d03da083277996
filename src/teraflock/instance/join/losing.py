"""Ends what was on a host that will never return: its instances, their disks and snapshots, and its volumes.

Invariants:
- only a host that has not answered for `LOST_AFTER` is given up, and never while an instance can still be created
  again on another host: that costs its tenant nothing but time;
- nothing of it is charged after the host was last seen, and its cards and addresses are free at once. Whoever gets the
  addresses cannot meet the old guests: other hosts accept no packets of a host that is not part of the installation;
- should the host join again, whatever it still has is removed before it is used (`reconcile/hosts.py`).
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from teraflock.base.errors import Conflict
from teraflock.fleet.left_behind import store as left_behind
from teraflock.fleet.model import Host, HostState
from teraflock.image import store as images
from teraflock.instance import store as instances
from teraflock.instance.across import store as across
from teraflock.instance.copy.rules import is_movable
from teraflock.instance.join.model import HostLosses
from teraflock.instance.model import Instance
from teraflock.instance.rules import lost_for_good
from teraflock.instance.snapshot import store as snapshots
from teraflock.instance.states import LOST_WITH_HOST
from teraflock.instance.volume import store as volumes
from teraflock.instance.volume.lost import copies_that_follow, recover_or_end
from teraflock.storage.database import Transaction

LOST_AFTER: Final = timedelta(minutes=5)
"""A host that reboots is back sooner. `reconcile/moving.py` waits as long before it moves instances."""
DISK_LOST: Final = "Its host was lost for good, with its disk and snapshots"


def check_lost(tx: Transaction, host: Host, now: datetime) -> None:
    """Refuse to give up a host that may come back, or whose instances can still move."""
    if host.state != HostState.AWAY or host.seen_at > now - LOST_AFTER:
        raise Conflict(
            f"`{host.name}` is not lost: it was seen at {host.seen_at:%Y-%m-%d %H:%M:%S} UTC",
            hint=f"Empty it instead: `tera host drain {host.name} --deadline 0s`. A host is lost when it has not"
            f" answered for {LOST_AFTER.seconds // 60} minutes",
        )
    waiting = [each for each in across.on_host_in_all_projects(tx, host.id) if _can_move(tx, each)]
    if waiting:
        raise Conflict(
            f"Instances of `{host.name}` that wait for room on another host: {len(waiting)}",
            hint="They are created again there as soon as there is room. Make room, or delete them first",
        )


def give_up(tx: Transaction, host: Host, now: datetime, random_bytes: Callable[[int], bytes]) -> HostLosses:
    """End everything on a lost host."""
    lost = across.on_host_in_all_projects(tx, host.id)
    for each in lost:
        left_behind.note(tx, each.id, host.id, each.project_id, (), now)
        after = lost_for_good(each, DISK_LOST, now)
        last_seen = min(now, host.seen_at)
        instances.put(tx, each, after, now=now, random_bytes=random_bytes, last_seen=last_seen)
        snapshots.remove_all_of(tx, each.id)
        images.fail_unmade(tx, each.id, "Its instance was lost before it was made")
    left_behind.free_addresses(tx, host.id)
    found = volumes.on_host_in_all_projects(tx, host.id)
    kept = sum(recover_or_end(tx, each, host, now, random_bytes) for each in found)
    return HostLosses(instances=len(lost), volumes=len(found) - kept, volumes_recovered=kept)


def _can_move(tx: Transaction, instance: Instance) -> bool:
    if instance.phase not in LOST_WITH_HOST or not is_movable(instance, with_volumes=True):
        return False
    return not instance.volumes or copies_that_follow(tx, instance) is not None
