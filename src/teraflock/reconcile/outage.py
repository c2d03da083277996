"""Settles what ran while the server was down, or could not read its hosts for a while.

A guest is charged for that time only if it kept running: the engine shows that the guest that runs now was
started before it was last known to run. All other guests are charged up to the last reading that found their
host, as on a lost host. They are away until `drift.py` finds them running, or starts them again.

Both facts are recorded: when each site was watched (`site_watch`), and which guests kept running
(`ran_unwatched`). From these two tables `tera bill verify` proves that nobody pays for an outage.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from teraflock.fleet.model import Host, HostId, HostKind
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.driver import ComputeDriver, Seen, Sighting
from teraflock.instance.model import Instance
from teraflock.instance.rules import lost, settled
from teraflock.instance.states import BILLABLE, Wanted
from teraflock.reconcile.rentals import matched
from teraflock.reconcile.store import note_ran_unwatched
from teraflock.storage.database import Database, Transaction

UNWATCHED: Final = timedelta(seconds=20)
"""A host counts as not watched this long after its last reading. Four readings fit into it."""
LOOKS_MAX: Final = 5
"""A look is repeated if something changed in the meantime. After this many, the next turn tries again."""

RandomBytes = Callable[[int], bytes]


class OutageLook(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine shows after a time in which these hosts were not watched."""

    at: datetime
    hosts: tuple[Host, ...]
    before: Mapping[str, Instance]
    """The instances of these hosts, as they were before the engine was asked."""
    seen: Mapping[str, Sighting]


class Changed(Exception):
    """An instance changed between the look and its evaluation."""


def look(database: Database, driver: ComputeDriver, hosts: Sequence[Host], now: datetime) -> OutageLook:
    with database.read() as tx:
        rows = [each for host in hosts for each in across.on_host_in_all_projects(tx, host.id)]
    names = {host.id: host.name for host in hosts if host.kind == HostKind.OWN}
    right = {str(each.id): names.get(HostId(each.host_id or ""), "") for each in rows}
    seen, _ = matched(driver.sightings(), {host.name: host.remote_id for host in hosts}, right)
    return OutageLook(at=now, hosts=tuple(hosts), before={each.id: each for each in rows}, seen=seen)


def ran_on(instance: Instance, sighting: Sighting | None, last_seen: datetime) -> bool:
    """Check whether the guest that runs now is the one last known to run."""
    if sighting is None or sighting.seen != Seen.RUNNING or sighting.started_at is None:
        return False
    return sighting.started_at <= max(last_seen, instance.running_since or last_seen)


def settle(
    tx: Transaction, found: OutageLook, from_at: datetime, now: datetime, random_bytes: RandomBytes
) -> int:
    """Record which guests kept running, and end the charges of all others at the last reading. Return how
    many those were."""
    count = 0
    for host in found.hosts:
        for instance in across.on_host_in_all_projects(tx, host.id):
            if instance.phase not in BILLABLE or _began_after(instance, found):
                continue
            if found.before[instance.id].sequence != instance.sequence:
                raise Changed
            sighting = found.seen.get(instance.id)
            if sighting is not None and sighting.started_at and ran_on(instance, sighting, host.seen_at):
                note_ran_unwatched(tx, instance, from_at, sighting.started_at)
            else:
                leave_unknown(tx, instance, host, now, random_bytes)
                count += 1
    return count


def leave_unknown(
    tx: Transaction, instance: Instance, host: Host, now: datetime, random_bytes: RandomBytes
) -> None:
    """End charges at the last reading, or when the tenant asked for the end if that was earlier."""
    is_asked = instance.wanted != Wanted.RUNNING
    last_seen = min(host.seen_at, instance.wanted_at) if is_asked else host.seen_at
    away = settled(lost(instance))
    store.put(tx, instance, away, now=now, random_bytes=random_bytes, last_seen=last_seen)


def _began_after(instance: Instance, found: OutageLook) -> bool:
    """Check whether the instance was not charged yet when the engine was asked."""
    before = found.before.get(instance.id)
    return before is None or before.phase not in BILLABLE
