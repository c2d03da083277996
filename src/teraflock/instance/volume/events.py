"""Events of volumes. The meter reads them like the events of a stopped instance, which holds a disk and snapshots."""

from collections.abc import Callable
from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.instance.volume.model import Volume
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event


def record_held(
    tx: Transaction,
    volume: Volume,
    now: datetime,
    random_bytes: Callable[[int], bytes],
    *,
    ends: bool = False,
    until: datetime | None = None,
) -> None:
    """Record what the volume holds from now on. `ends`: nothing, since `until` if that is given. The volume has the
    sequence of this event."""
    record_event(
        tx,
        Event(
            id=EventId(new_id("evt", now, random_bytes)), at=now, kind="volume.moved", subject=volume.id,
            project=volume.project_id,
            details={
                "sequence": volume.sequence, "generation": 0, "name": f"volume {volume.name}", "from": "",
                "to": "deleting" if ends else "stopped", "disk_bytes": volume.size_bytes,
                "snapshots_bytes": volume.snapshots_bytes, "member": volume.created_by, "mode": "volume",
                "labels": "{}", "asked_at_us": microseconds(until or now),
            },
        ),
    )  # fmt: skip
