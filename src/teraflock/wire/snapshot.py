"""Snapshots on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Name, Ref
from teraflock.wire.word import closed


class SnapshotRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name


class RestoreRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    snapshot: Annotated[Ref, Meta(min_length=1)]


class SnapshotAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    state: Annotated[str, closed("making", "ready", "failed")]
    problem: str = ""
    """Why it failed."""
    size_bytes: int
    """What it stores beyond the image and earlier snapshots. It is charged until the snapshot is deleted."""
    created_at: datetime


class SnapshotList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[SnapshotAnswer, ...]
