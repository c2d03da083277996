"""Images on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec

from teraflock.wire.field import Name, Ref
from teraflock.wire.word import closed


class ImageRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An image to create. Give either `recipe` or `instance`."""

    name: Name
    recipe: Ref = ""
    instance: Ref = ""


class ImageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    shared: bool
    recipe: str
    state: Annotated[str, closed("waiting", "ready", "failed", "deleting")]
    problem: str
    size_bytes: int
    created_at: datetime


class ImagePage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ImageAnswer, ...]
    next: str | None
