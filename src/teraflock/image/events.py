"""Events of images that are charged. The meter reads them like the events of a stopped instance.

The size of an image is in `snapshots_bytes`, and `mode` marks it as an image, so that it has its own price.
"""

from collections.abc import Callable
from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.image import store
from teraflock.image.model import Image
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

RandomBytes = Callable[[int], bytes]


def record_size(
    tx: Transaction, image: Image, size_bytes: int, now: datetime, random_bytes: RandomBytes
) -> None:
    """Record the size that the image has from now on."""
    store.set_metered(tx, image.id, size_bytes, 1)
    record_event(tx, _event(image, "stopped", size_bytes, 1, now, random_bytes))


def record_deletion(tx: Transaction, image: Image, now: datetime, random_bytes: RandomBytes) -> None:
    """Record that the image is deleted. It is charged up to now."""
    if image.sequence == 1:
        store.set_metered(tx, image.id, image.size_bytes, 2)
        record_event(tx, _event(image, "deleting", image.size_bytes, 2, now, random_bytes))


def _event(
    image: Image, to: str, size_bytes: int, sequence: int, now: datetime, random_bytes: RandomBytes
) -> Event:
    return Event(
        id=EventId(new_id("evt", now, random_bytes)), at=now, kind="image.moved", subject=image.id,
        project=image.project_id,
        details={
            "sequence": sequence, "generation": 0, "name": f"image {image.name}", "from": "", "to": to,
            "snapshots_bytes": size_bytes, "member": image.created_by, "mode": "image", "labels": "{}",
            "asked_at_us": microseconds(now),
        },
    )  # fmt: skip
