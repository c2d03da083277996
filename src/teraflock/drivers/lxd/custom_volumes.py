"""The engine's custom storage volumes in our pool: those for datasets, and those of tenants.

A volume has our tag, its kind and its id in its configuration. Nothing without our tag is listed or removed.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from teraflock.drivers.lxd import names
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.interfaces import ID
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.pool import Pool
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.instance.engine_errors import EngineBusy
from teraflock.instance.volume.model import VolumeMount

KIND: Final = "user.teraflock.kind"


class CustomVolumes:
    def __init__(self, engine: LxdClient, ours: Names, pool: Pool) -> None:
        self._engine = engine
        self._ours = ours
        self._pool = pool

    def all(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """The volumes of one kind."""
        found = self._engine.get("storage-pools", self._ours.pool, "volumes", "custom", recursion=1)
        for each in found:
            if each["config"].get(names.TAG) == self._ours.installation and each["config"].get(KIND) == kind:
                yield each

    def get(self, id: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = self._engine.get(*self.place(id))
        except EngineMissing:
            return None
        return found

    def create(self, kind: str, id: str, config: Mapping[str, str]) -> None:
        """Create a volume, unless it exists."""
        body = {
            "name": names.guest(id),
            "type": "custom",
            "content_type": "filesystem",
            "config": {names.TAG: self._ours.installation, KIND: kind, ID: id, **config},
        }
        with contextlib.suppress(EngineTaken):
            self._engine.post("storage-pools", self._ours.pool, "volumes", "custom", body=body)

    def copy(self, id: str, to: str, config: Mapping[str, str]) -> None:
        """Create a volume with the content of another one."""
        body = {
            "name": names.guest(to),
            "type": "custom",
            "content_type": "filesystem",
            "config": config,
            "source": {"type": "copy", "pool": self._ours.pool, "name": names.guest(id), "volume_only": True},
        }
        self._engine.post("storage-pools", self._ours.pool, "volumes", "custom", body=body)

    def receive(self, id: str, content: Iterable[bytes], *, seconds_max: int) -> None:
        """Create a volume from a packed one."""
        headers = {"X-LXD-name": names.guest(id), "X-Incus-name": names.guest(id)}
        place = ("storage-pools", self._ours.pool, "volumes", "custom")
        self._engine.post(*place, body=iter(content), headers=headers, seconds_max=seconds_max)

    def change(self, id: str, config: Mapping[str, str]) -> None:
        self._engine.patch(*self.place(id), body={"config": config})

    def delete(self, id: str) -> None:
        """Delete a volume with its snapshots. Raise `EngineBusy` while a guest has it."""
        found = self.get(id)
        if found is None:
            return
        if any("/instances/" in each for each in found.get("used_by") or ()):
            raise EngineBusy("An instance still has this volume", hint="Teraflock tries again")
        with contextlib.suppress(EngineMissing):
            self._engine.delete(*self.place(id))

    def folder(self, id: str) -> Path:
        """Where the engine has the files of a volume. Only for pools that keep volumes mounted, as btrfs does."""
        return self._pool.path() / "custom" / f"{self._ours.project}_{names.guest(id)}"

    def place(self, id: str, *more: str) -> tuple[str, ...]:
        return ("storage-pools", self._ours.pool, "volumes", "custom", names.guest(id), *more)


def volume_devices(mounts: Sequence[VolumeMount], ours: Names) -> dict[str, dict[str, str]]:
    """The devices with which a guest has volumes of its tenant."""
    return {
        names.guest(each.id): {
            "type": "disk",
            "pool": ours.pool,
            "source": names.guest(each.id),
            "path": each.path,
        }
        for each in mounts
    }
