"""Images: what the disk of a new instance starts as."""

from collections.abc import Mapping, Set
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NewType

import msgspec

from teraflock.tenant.model import NO_PROJECT, ProjectId

ImageId = NewType("ImageId", str)
NEVER: Final = datetime.min.replace(tzinfo=UTC)


class ImageState(StrEnum):
    WAITING = "waiting"
    """Waiting for the build, or for the instance it is made from."""
    READY = "ready"
    FAILED = "failed"
    DELETING = "deleting"


IMAGE_MOVES: Final[Mapping[ImageState, Set[ImageState]]] = {
    ImageState.WAITING: {ImageState.READY, ImageState.FAILED, ImageState.DELETING},
    ImageState.READY: {ImageState.WAITING, ImageState.DELETING},  # built again
    ImageState.FAILED: {ImageState.WAITING, ImageState.DELETING},
    ImageState.DELETING: frozenset(),  # then its row is removed
}


class Image(msgspec.Struct, frozen=True, kw_only=True):
    id: ImageId
    project_id: ProjectId
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
    """The number of events about its size. 0: the size is not known yet, so it is not charged."""

    @property
    def is_metered(self) -> bool:
        """A project's own images from instances are charged. Images from recipes are free."""
        return not self.recipe and not self.shared

    @property
    def shared(self) -> bool:
        return not self.project_id


def shipped(recipe: str) -> Image:
    """A recipe of ours as an image that was never built, for machines that install it themselves."""
    return Image(
        id=ImageId(""),
        project_id=NO_PROJECT,
        name=recipe,
        recipe=recipe,
        state=ImageState.READY,
        created_at=NEVER,
    )
