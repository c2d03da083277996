"""Snapshots of guests in the engine. A snapshot belongs to its guest and is deleted with it.

Every call is idempotent. The caller stops the guest before it restores a snapshot.
"""

import contextlib
import subprocess
from typing import Final

from teraflock.drivers.lxd import guest
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.rest import LxdClient

FLUSH_SECONDS_MAX: Final = 20.0


class LxdSnapshots:
    """The snapshots of all guests of one engine. `name` is always the engine's name of the guest."""

    def __init__(self, engine: LxdClient) -> None:
        self._engine = engine

    def take(self, name: str, snapshot: str) -> int:
        """Return the bytes that the snapshot keeps: data not shared with another snapshot or image.

        The number is stored on the instance first, so that the snapshot includes it and repeated calls return the
        same.
        """
        try:
            return self._kept_bytes(name, snapshot)
        except EngineMissing:
            flush()
            own_bytes = self._engine.get("instances", name, "state")["disk"].get("root", {}).get("usage", 0)
            self._engine.patch("instances", name, body={"config": {guest.KEPT: str(max(0, own_bytes))}})
        with contextlib.suppress(EngineTaken):
            body = {"name": snapshot, "stateful": False}
            self._engine.post("instances", name, "snapshots", body=body)
        return self._kept_bytes(name, snapshot)

    def restore(self, name: str, snapshot: str) -> None:
        before = self._engine.get("instances", name)
        self._engine.put("instances", name, body={"restore": snapshot})
        # The engine also restores limits and cards, but another instance may have the card now.
        after = self._engine.get("instances", name)
        self._engine.put("instances", name, body=guest.kept(before, after))

    def delete(self, name: str, snapshot: str) -> None:
        with contextlib.suppress(EngineMissing):
            self._engine.delete("instances", name, "snapshots", snapshot)

    def _kept_bytes(self, name: str, snapshot: str) -> int:
        return int(self._engine.get("instances", name, "snapshots", snapshot)["config"].get(guest.KEPT, "0"))


def flush() -> None:
    """Write guests' data to the disks, because the pool counts only written data. Stop waiting after a limit."""
    flushing = subprocess.Popen(["sync"], stdin=subprocess.DEVNULL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        flushing.wait(FLUSH_SECONDS_MAX)
