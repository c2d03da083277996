"""Queued launches on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec

from teraflock.wire.shape import ShapeAnswer
from teraflock.wire.word import closed


class QueuedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    """Of the instances. Empty: generated when it starts."""
    state: Annotated[str, closed("waiting", "launched", "cancelled", "failed")]
    shape: ShapeAnswer
    """The size of each instance."""
    instances: int
    priority: int
    place: int | None
    """Its place in the queue of the whole installation; 1 is next. Null: it does not wait, or its place is unknown."""
    waiting: int
    """How many launches wait in the whole installation."""
    expected_at: datetime | None
    """When it starts at the latest, from the time limits of running instances. Null: unknown."""
    reason: str
    """Why it waits, or why it failed."""
    instance_ids: tuple[str, ...]
    """Its instances, once it was launched."""
    created_at: datetime
    created_by: str
    ended_at: datetime | None


class QueuedOfTenantAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A queued launch of any tenant, for operators."""

    organisation: str
    project: str
    queued: QueuedAnswer


class QueuedOfTenantList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[QueuedOfTenantAnswer, ...]


class QueuedPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[QueuedAnswer, ...]
    next: str | None
