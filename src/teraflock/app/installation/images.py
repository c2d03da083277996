"""The base image: `make up` requests it, and the server builds it."""

import time
from collections.abc import Callable
from typing import Final

from teraflock.base.errors import Conflict, NotFound
from teraflock.client import Client
from teraflock.wire.image import ImageAnswer, ImageRequest

BASE: Final = "base"
BUILD_SECONDS_MAX: Final = 900.0
"""Half a minute with a fast mirror; several minutes with a slow one."""
LOOK_AGAIN_SECONDS: Final = 0.3


def ensure_base(client: Client, on_progress: Callable[[str], None]) -> str:
    """The final state of the image, with its problem if there is one."""
    image = _asked(client)
    began = time.monotonic()
    while image.state not in ("ready", "failed") and time.monotonic() - began < BUILD_SECONDS_MAX:
        on_progress("image base: building, which takes a minute or two")
        time.sleep(LOOK_AGAIN_SECONDS)
        image = client.images.get(image.id)
    return f"{image.state}: {image.problem}" if image.problem else image.state


def _asked(client: Client) -> ImageAnswer:
    """The existing image, or a new request for it. A failed image is requested again."""
    try:
        image = client.images.get(BASE)
        if image.state != "failed":
            return image
    except NotFound:
        pass
    try:
        return client.images.create(ImageRequest(name=BASE, recipe=BASE))
    except Conflict:  # another request was faster
        return client.images.get(BASE)
