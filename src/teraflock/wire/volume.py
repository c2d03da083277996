"""Volumes on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Name, Ref
from teraflock.wire.word import closed

VolumePath = Annotated[str, Meta(max_length=600, pattern=r"^[A-Za-z0-9._/-]*$(?!\n)")]
VolumeBytes = Annotated[int, Meta(ge=0, le=1 << 50)]


class VolumeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    size_bytes: VolumeBytes
    copied: bool = False
    """Copy it to another host on a schedule."""


class VolumeChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    size_bytes: VolumeBytes | None = None
    """A volume can only grow."""
    copied: bool | None = None
    """Copy it to another host on a schedule, or remove its copies."""


class VolumeTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    instance: Annotated[Ref, Meta(min_length=1)]
    path: VolumePath = ""
    """Where the instance has it. Default: `/volumes/NAME`."""


class VolumeSnapshotRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name


class VolumeSnapshotAnswer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: Annotated[str, closed("making", "ready", "deleting")]
    size_bytes: int
    """What it adds to the volume and to earlier snapshots."""
    created_at: datetime


class VolumeCopyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    state: Annotated[str, closed("making", "ready", "removing")]
    """A disk that a copy has replaced is `removing` until its lost host is back."""
    host: str
    size_bytes: int
    """The size of its files."""
    made_at: datetime
    """When the volume had this content."""


class VolumeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    state: Annotated[str, closed("free", "attached", "detaching", "restoring", "deleting")]
    size_bytes: int
    snapshots_bytes: int
    """Of its snapshots and copies."""
    instance: str
    """The name of the instance that has it. Empty: none."""
    path: str
    problem: str
    snapshots: tuple[VolumeSnapshotAnswer, ...]
    """Only in the answer about one volume."""
    copied: bool
    """Whether it is copied to another host on a schedule."""
    copies: tuple[VolumeCopyAnswer, ...]
    """Only in the answer about one volume."""
    created_at: datetime
    created_by: str


class VolumeList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[VolumeAnswer, ...]
