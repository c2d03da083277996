"""Images: what an instance boots."""

from datetime import datetime
from enum import StrEnum
from typing import NewType

import msgspec

ImageId = NewType("ImageId", str)


class ImageState(StrEnum):
    WAITING = "waiting"
    """To be built, or to be made from an instance."""
    READY = "ready"
    FAILED = "failed"
    DELETING = "deleting"


class Image(msgspec.Struct, frozen=True, kw_only=True):
    id: ImageId
    project_id: str
    """Empty: for all projects."""
    name: str
    recipe: str
    """Empty: made from an instance."""
    state: ImageState
    problem: str = ""
    size_bytes: int = 0
    source_instance_id: str = ""
    created_at: datetime

    @property
    def shared(self) -> bool:
        return not self.project_id
