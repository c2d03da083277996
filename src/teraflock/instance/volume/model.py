"""Values of volumes."""

from collections.abc import Mapping, Set
from datetime import datetime
from enum import StrEnum
from typing import Final, NewType

import msgspec

from teraflock.instance.copy.states import CopyState
from teraflock.tenant.model import ProjectId

VolumeId = NewType("VolumeId", str)
PREFIX: Final = "vol"
SNAPSHOT_PREFIX: Final = "vsn"
COPY_PREFIX: Final = "vcp"
FOLDER: Final = "/volumes"
"""Where an instance has its volumes, unless a path is given."""


class VolumeMount(msgspec.Struct, frozen=True):
    """A volume that an instance should have."""

    id: str
    path: str
    host_id: str
    """Where the volume is. An instance that has it stays there."""


class Volume(msgspec.Struct, frozen=True, kw_only=True):
    id: VolumeId
    project_id: ProjectId
    name: str
    size_bytes: int
    made_bytes: int = 0
    """Its size on the engine. 0: it does not exist there yet."""
    snapshots_bytes: int = 0
    site: str = ""
    host_id: str = ""
    """Empty: no instance had it yet. It is created on the host of the first one and stays there."""
    instance_id: str = ""
    """The instance that has it, until the engine has taken it away."""
    path: str = ""
    detaching: bool = False
    deleting: bool = False
    restore_from: str = ""
    """The snapshot that replaces its content."""
    problem: str = ""
    sequence: int = 0
    created_at: datetime
    created_by: str
    disk_id: str
    """Its id on the engine: its own, or that of the copy from which it was recovered."""
    copied: bool = False
    """Whether it is copied to another host on a schedule."""

    @property
    def state(self) -> str:
        if self.deleting:
            return "deleting"
        if self.detaching:
            return "detaching"
        if self.restore_from:
            return "restoring"
        return "attached" if self.instance_id else "free"


class VolumeSnapshotState(StrEnum):
    MAKING = "making"
    READY = "ready"
    DELETING = "deleting"


VOLUME_SNAPSHOT_MOVES: Final[Mapping[VolumeSnapshotState, Set[VolumeSnapshotState]]] = {
    VolumeSnapshotState.MAKING: {VolumeSnapshotState.READY, VolumeSnapshotState.DELETING},
    VolumeSnapshotState.READY: {VolumeSnapshotState.DELETING},
    VolumeSnapshotState.DELETING: frozenset(),
}


class VolumeSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    volume_id: str
    name: str
    state: VolumeSnapshotState
    size_bytes: int = 0
    """What it adds. Fixed when it is made."""
    created_at: datetime


class VolumeCopy(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a volume on another host. On the engine, it is a volume that no instance has."""

    id: str
    volume_id: str
    source_id: str
    """The disk that was copied."""
    host_id: str
    """Where it is."""
    site: str
    source_host_id: str = ""
    """Making: where the source is, which may hold a part of it, too."""
    state: CopyState
    """A disk that a copy has replaced is `removing` until its host is back."""
    size_bytes: int = 0
    """The size of its files."""
    disk_bytes: int
    """The size of the volume."""
    made_at: datetime
    """When the volume had this content."""
    touched_at: datetime
    """Making: when the process that makes it was last known to work on it."""


class ShownVolume(msgspec.Struct, frozen=True, kw_only=True):
    """A volume as a tenant sees it."""

    volume: Volume
    instance: str
    """The name of the instance that has it."""
    snapshots: tuple[VolumeSnapshot, ...] = ()
    copies: tuple[tuple[VolumeCopy, str], ...] = ()
    """With the names of their hosts."""


class VolumeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A volume on an engine."""

    volume_id: str
    host: str
    size_bytes: int
    users: tuple[str, ...] = ()
    """The instances that have it."""
