"""The pool with the guests' disks: how full it is, and whether the limits of the disks hold.

The limits are btrfs quotas. The kernel may mark them inconsistent, and then enforces none of them until they were
counted anew; nobody else on the host looks at that.
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

from teraflock.drivers.lxd.rest import Client
from teraflock.fleet.model import DiskLimits

SYSTEM: Final = Path("/sys/fs/btrfs")
STEP_BYTES: Final = 64 << 20
"""How exactly the fill is told: it changes all the time, and every change is written down."""
_FS_INFO: Final = 0x8400941F
_FS_INFO_BYTES: Final = 1024
_QUOTA_RESCAN: Final = 0x4040942C
_QUOTA_RESCAN_BYTES: Final = 64


class Pool:
    def __init__(self, host: Client, name: str) -> None:
        """`host` speaks within the `default` project."""
        self._host = host
        self._name = name

    def space(self) -> tuple[int, int]:
        """Bytes used and bytes in all."""
        space = self._host.get("storage-pools", self._name, "resources")["space"]
        return int(space.get("used", 0)) // STEP_BYTES * STEP_BYTES, int(space["total"])

    def limits(self) -> DiskLimits:
        """Whether the disks' limits are enforced. A pool of another kind keeps them by itself."""
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
        """Let the kernel count all disks anew; it goes on in the background, and the limits hold when it is done."""
        with contextlib.suppress(OSError), self._opened() as folder:  # one is under way already
            fcntl.ioctl(folder, _QUOTA_RESCAN, bytes(_QUOTA_RESCAN_BYTES))

    def path(self) -> Path:
        """Where the pool is mounted, seen with the engine's own eyes: it may have mounts of its own."""
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
    """The id of the btrfs that a folder lies on; `OSError` where it is another file system."""
    answer = bytearray(_FS_INFO_BYTES)
    fcntl.ioctl(folder, _FS_INFO, answer)
    return str(uuid.UUID(bytes=bytes(answer[16:32])))


def _peer(path: Path) -> int:
    """The process that listens on a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.connect(str(path))
        credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, _, _ = struct.unpack("3i", credentials)
    return int(pid)
