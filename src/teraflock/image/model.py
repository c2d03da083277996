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
    created_by: str = ""
    """The member who made it."""
    sequence: int = 0
    """How many events told of it; 0: its size is not known yet, so it is not charged."""

    @property
    def is_metered(self) -> bool:
        """What a project keeps for itself is charged; what is built from a recipe is not."""
        return not self.recipe and not self.shared

    @property
    def shared(self) -> bool:
        return not self.project_id
