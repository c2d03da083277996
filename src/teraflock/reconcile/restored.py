"""Prepares the rows of a restored backup before the loops of a server read them.

What happened after the backup is unknown. Instances that ran become away, and are not charged since their
host was last seen; the loops find out their state. A guest that the engine has and the database does not know
is reported, but never removed. Images that the engine lacks are built again from their recipes.
"""

from collections.abc import Callable
from datetime import datetime

from teraflock.fleet import store as fleet
from teraflock.fleet.rented import store as rented_hosts
from teraflock.image import store as images
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.lease import store as leases
from teraflock.instance.rules import lost, settled
from teraflock.storage.database import Transaction


def make_ready(tx: Transaction, now: datetime, random_bytes: Callable[[int], bytes]) -> None:
    leases.let_go_all(tx)
    images.rebuild_all(tx)
    for host in (*fleet.outlines(tx), *rented_hosts.rented_outlines(tx)):
        for instance in across.on_host_in_all_projects(tx, host.id):
            if (after := lost(instance)) is not instance:
                store.put(
                    tx, instance, settled(after), now=now, random_bytes=random_bytes, last_seen=host.seen_at
                )
