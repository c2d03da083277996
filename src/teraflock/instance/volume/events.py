"""Events of volumes. The meter reads them like the events of a stopped instance, which holds a disk and snapshots."""

from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.base.events import Details, RandomBytes, moved_event
from teraflock.instance.volume.model import Volume
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event


def record_held(
    tx: Transaction,
    volume: Volume,
    now: datetime,
    random_bytes: RandomBytes,
    *,
    ends: bool = False,
    until: datetime | None = None,
) -> None:
    """Record what the volume holds from now on. `ends`: nothing, since `until` if that is given. The volume has the
    sequence of this event."""
    details: Details = {
        "name": f"volume {volume.name}",
        "sequence": volume.sequence,
        "to": "deleting" if ends else "stopped",
        "disk_bytes": volume.size_bytes,
        "snapshots_bytes": volume.snapshots_bytes,
        "mode": "volume",
        "asked_at_us": microseconds(until or now),
    }
    record_event(tx, moved_event("volume", volume, now, random_bytes, details))
