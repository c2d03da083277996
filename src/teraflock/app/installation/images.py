"""The base image: asked for by `make up`, built by the server."""

import time
from collections.abc import Callable
from typing import Final

from teraflock.base.errors import Conflict, NotFound
from teraflock.client import Client
from teraflock.wire.image import ImageAnswer, ImageRequest

BASE: Final = "base"
BUILD_SECONDS_MAX: Final = 900.0
"""Half a minute with a near mirror; a slow one takes many."""
LOOK_AGAIN_SECONDS: Final = 0.3


def ensure_base(client: Client, tell: Callable[[str], None]) -> str:
    """Its state in the end, and what is wrong with it if anything is."""
    image = _asked(client)
    began = time.monotonic()
    while image.state not in ("ready", "failed") and time.monotonic() - began < BUILD_SECONDS_MAX:
        tell("image base: being built, which takes a minute or two")
        time.sleep(LOOK_AGAIN_SECONDS)
        image = client.images.get(image.id)
    return f"{image.state}: {image.problem}" if image.problem else image.state


def _asked(client: Client) -> ImageAnswer:
    """The image there is, or one that is asked for now; a failed one is asked for again."""
    try:
        image = client.images.get(BASE)
        if image.state != "failed":
            return image
    except NotFound:
        pass
    try:
        return client.images.create(ImageRequest(name=BASE, recipe=BASE))
    except Conflict:  # another was faster
        return client.images.get(BASE)
