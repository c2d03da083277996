"""What must be true of the rows of a backup before the loops of a server see them.

Nobody knows what happened since the backup was made. So what ran is away, and is not charged since its host was last
seen; the loops find out what became of it. A guest that the engine has and the rows do not know is told, never
removed. Images are built again from their recipes where the engine lacks them.
"""

from collections.abc import Callable
from datetime import datetime

from teraflock.fleet import store as fleet
from teraflock.image import store as images
from teraflock.instance import store
from teraflock.instance.rules import lost, settled
from teraflock.reconcile import store as leases
from teraflock.storage.database import Transaction


def make_ready(tx: Transaction, now: datetime, random_bytes: Callable[[int], bytes]) -> None:
    leases.let_go_all(tx)
    images.rebuild_all(tx)
    for host in (*fleet.outlines(tx), *fleet.rented_outlines(tx)):
        for instance in store.on_host_in_all_projects(tx, host.id):
            if (after := lost(instance)) is not instance:
                store.put(
                    tx, instance, settled(after), now=now, random_bytes=random_bytes, last_seen=host.seen_at
                )
