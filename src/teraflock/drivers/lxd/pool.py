"""The storage pool of the guests' disks: how full it is, and whether disk limits are enforced.

The limits are btrfs quotas. The kernel may mark them inconsistent, and then enforces none of them until they
are counted again. Nothing else on the host checks this.
"""

import contextlib
import fcntl
import os
import socket
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from teraflock.drivers.lxd.rest import LxdClient
from teraflock.fleet.model import DiskLimits

SYSTEM: Final = Path("/sys/fs/btrfs")
STEP_BYTES: Final = 64 << 20
"""Precision of the reported usage: it changes constantly, and every change is recorded."""
_FS_INFO: Final = 0x8400941F
_FS_INFO_BYTES: Final = 1024
_QUOTA_RESCAN: Final = 0x4040942C
_QUOTA_RESCAN_BYTES: Final = 64


class Pool:
    def __init__(self, host: LxdClient, name: str) -> None:
        """`host` is a client for the `default` project."""
        self._host = host
        self._name = name

    def space(self) -> tuple[int, int]:
        """Return used and total bytes."""
        space = self._host.get("storage-pools", self._name, "resources")["space"]
        return int(space.get("used", 0)) // STEP_BYTES * STEP_BYTES, int(space["total"])

    def limits(self) -> DiskLimits:
        """Check whether disk limits are enforced. Pools other than btrfs enforce them without our help."""
        try:
            with self._opened() as folder:
                quotas = SYSTEM / _file_system(folder) / "qgroups"
            if not quotas.exists():
                return DiskLimits.OFF
            return (
                DiskLimits.LOST
                if (quotas / "inconsistent").read_text("ascii").strip() == "1"
                else DiskLimits.HOLD
            )
        except OSError:
            return DiskLimits.HOLD

    def recount(self) -> None:
        """Start a recount of all disks in the background. The limits are enforced again when it is done."""
        with contextlib.suppress(OSError), self._opened() as folder:  # a recount is already running
            fcntl.ioctl(folder, _QUOTA_RESCAN, bytes(_QUOTA_RESCAN_BYTES))

    def path(self) -> Path:
        """Return where the pool is mounted, as seen by the engine, which may have its own mounts."""
        engine = self._host.socket_path
        return Path(f"/proc/{_peer(engine)}/root{engine.parent}/storage-pools/{self._name}")

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        folder = os.open(self.path(), os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield folder
        finally:
            os.close(folder)


def _file_system(folder: int) -> str:
    """Return the id of the btrfs that contains a folder. Raise `OSError` for another file system."""
    answer = bytearray(_FS_INFO_BYTES)
    fcntl.ioctl(folder, _FS_INFO, answer)
    return str(uuid.UUID(bytes=bytes(answer[16:32])))


def _peer(path: Path) -> int:
    """Return the process that listens on a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.connect(str(path))
        credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, _, _ = struct.unpack("3i", credentials)
    return int(pid)
