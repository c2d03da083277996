"""What an engine must do for volumes. All calls may be repeated."""

from collections.abc import Sequence
from typing import Protocol

from teraflock.instance.volume.model import VolumeMount, VolumeSeen


class VolumeDriver(Protocol):
    """With the capability VOLUMES. A volume is on one host, and only instances there can have it."""

    def volumes(self) -> Sequence[VolumeSeen]:
        """All volumes that have our mark. A host that does not answer is left out."""
        ...

    def create_volume(self, host: str, volume_id: str, size_bytes: int) -> None:
        """Create an empty volume, or let it grow to this size."""
        ...

    def attach_volume(self, host: str, instance_id: str, mount: VolumeMount) -> None:
        """Give the volume to an instance, running or stopped."""
        ...

    def detach_volume(self, host: str, instance_id: str, volume_id: str) -> None:
        """Take it from an instance, if the instance exists and has it. Raise `EngineBusy` while it is in use there."""
        ...

    def snapshot_volume(self, host: str, volume_id: str, snapshot_id: str) -> int:
        """Create a snapshot. Return the bytes that it adds, the same number for every call."""
        ...

    def restore_volume(self, host: str, volume_id: str, snapshot_id: str) -> None:
        """Replace the content of a volume that no instance has."""
        ...

    def delete_volume_snapshot(self, host: str, volume_id: str, snapshot_id: str) -> None: ...

    def delete_volume(self, host: str, volume_id: str) -> None:
        """Delete a volume with its snapshots. Raise `EngineBusy` while an instance has it."""
        ...
