"""A copy of an instance's disk on another host, and what a driver does with copies of disks and volumes."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec

from teraflock.fleet.model import HostId
from teraflock.instance.copy.states import CopyState
from teraflock.instance.driver import GuestFile, Handle
from teraflock.instance.model import InstanceId


class DiskCopy(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """On the engine, it is an image with this id."""
    instance_id: InstanceId
    host_id: HostId
    """Where it is."""
    site: str
    source_site: str
    """Where the instance was when the copy was made."""
    state: CopyState
    size_bytes: int = 0
    made_at: datetime
    """When the disk had this content."""
    touched_at: datetime
    """Making: when the process that makes it was last known to work on it."""


@runtime_checkable
class CopyDriver(Protocol):
    """An engine that packs disks and keeps packed ones as images. Every call may be repeated."""

    def pack_disk(self, handle: Handle, copy_id: str) -> AbstractContextManager[GuestFile]:
        """Pack the disk of an instance as it is now, and send it as a file. The guest may run."""
        ...

    def keep_image(self, image_id: str, content: Iterable[bytes]) -> None:
        """Create an image from a packed disk. `delete_image` removes it."""
        ...


@runtime_checkable
class VolumeCopyDriver(Protocol):
    """An engine that packs volumes and creates volumes from packed ones. `delete_volume` removes what a crash left."""

    def pack_volume(self, host: str, volume_id: str, copy_id: str) -> AbstractContextManager[GuestFile]:
        """Pack a volume as it is now, and send it as a file. An instance may have it. `size_bytes` is the size of its
        files. Whatever exists meanwhile has the id of the copy."""
        ...

    def keep_volume(self, host: str, volume_id: str, size_bytes: int, content: Iterable[bytes]) -> None:
        """Create a volume of this size from a packed one."""
        ...
