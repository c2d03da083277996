"""Events of images that are charged. The meter reads them like the events of a stopped instance.

The size of an image is in `snapshots_bytes`, and `mode` marks it as an image, so that it has its own price.
"""

from datetime import datetime

from teraflock.base.events import Details, Event, RandomBytes, moved_event
from teraflock.image import store
from teraflock.image.model import Image
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event


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
    details: Details = {"name": f"image {image.name}", "sequence": sequence, "to": to}
    details |= {"snapshots_bytes": size_bytes, "mode": "image"}
    return moved_event("image", image, now, random_bytes, details)
