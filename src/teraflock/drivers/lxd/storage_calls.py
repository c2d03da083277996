"""The calls of the driver about datasets and volumes."""

import contextlib
import socket
from collections.abc import Iterable, Iterator, Sequence

from teraflock.dataset.model import DatasetCopy
from teraflock.drivers.lxd.datasets import LxdDatasets
from teraflock.drivers.lxd.volumes import LxdVolumes
from teraflock.instance.driver import FileKind, GuestFile
from teraflock.instance.volume.model import VolumeMount, VolumeSeen


class StorageCalls:
    """`stored`, `disks` and `_host_name` are set by the driver."""

    stored: LxdDatasets
    disks: LxdVolumes
    _host_name: str

    def datasets(self) -> Sequence[DatasetCopy]:
        return self.stored.copies(self._host_name or socket.gethostname())

    def receive_dataset(self, host: str, dataset_id: str, offset: int, piece: bytes) -> None:
        self.stored.receive(dataset_id, offset, piece)

    def unpack_dataset(self, host: str, dataset_id: str, digest: str, size_bytes: int) -> None:
        self.stored.unpack(dataset_id, digest)

    def delete_dataset(self, host: str, dataset_id: str) -> None:
        self.stored.delete(dataset_id)

    def volumes(self) -> Sequence[VolumeSeen]:
        return tuple(self.disks.seen(self._host_name or socket.gethostname()))

    def create_volume(self, host: str, volume_id: str, size_bytes: int) -> None:
        self.disks.create(volume_id, size_bytes)

    def attach_volume(self, host: str, instance_id: str, mount: VolumeMount) -> None:
        self.disks.attach(instance_id, mount)

    def detach_volume(self, host: str, instance_id: str, volume_id: str) -> None:
        self.disks.detach(instance_id, volume_id)

    def snapshot_volume(self, host: str, volume_id: str, snapshot_id: str) -> int:
        return self.disks.snapshot(volume_id, snapshot_id)

    def restore_volume(self, host: str, volume_id: str, snapshot_id: str) -> None:
        self.disks.restore(volume_id, snapshot_id)

    def delete_volume_snapshot(self, host: str, volume_id: str, snapshot_id: str) -> None:
        self.disks.delete_snapshot(volume_id, snapshot_id)

    def delete_volume(self, host: str, volume_id: str) -> None:
        self.disks.delete(volume_id)

    @contextlib.contextmanager
    def pack_volume(self, host: str, volume_id: str, copy_id: str) -> Iterator[GuestFile]:
        with self.disks.packed(volume_id, copy_id) as (size, content):
            yield GuestFile(kind=FileKind.FILE, size_bytes=size, content=content)

    def keep_volume(self, host: str, volume_id: str, size_bytes: int, content: Iterable[bytes]) -> None:
        self.disks.keep(volume_id, size_bytes, content)
