"""Tenants' volumes on this host: custom volumes of the engine, attached to one guest at a time.

The engine changes the owners of the files when a guest with other user ids gets the volume.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from teraflock.drivers.lxd import guest, names
from teraflock.drivers.lxd.custom_volumes import CustomVolumes, volume_devices
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.export import NAME, PACK_SECONDS_MAX
from teraflock.drivers.lxd.images import HOLES_BYTES_MAX, length_of_files
from teraflock.drivers.lxd.interfaces import ID
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.snapshots import flush
from teraflock.instance.engine_errors import EngineBusy, EngineFailed, EngineRefused
from teraflock.instance.volume.model import VolumeMount, VolumeSeen

KIND: Final = "volume"
SIZE: Final = "user.teraflock.size"


class LxdVolumes:
    def __init__(self, engine: LxdClient, ours: Names, volumes: CustomVolumes) -> None:
        self._engine = engine
        self._ours = ours
        self._volumes = volumes

    def seen(self, host: str) -> Iterator[VolumeSeen]:
        known = {names.guest(id): id for id in self._instances()}
        for each in self._volumes.all(KIND):
            if each["name"] != names.guest(each["config"][ID]):
                continue  # a part of a copy
            users = [address.partition("?")[0].rpartition("/")[2] for address in each.get("used_by") or ()]
            yield VolumeSeen(
                volume_id=each["config"][ID],
                host=host,
                size_bytes=int(each["config"].get(SIZE, "0")),
                users=tuple(known[name] for name in users if name in known),
            )

    def create(self, id: str, size_bytes: int) -> None:
        config = {"size": f"{size_bytes}B", SIZE: str(size_bytes)}
        found = self._volumes.get(id)
        if found is None:
            self._volumes.create(KIND, id, config)
        elif int(found["config"].get(SIZE, "0")) < size_bytes:
            self._volumes.change(id, config)

    def attach(self, instance: str, mount: VolumeMount) -> None:
        found = self._engine.get("instances", names.guest(instance))
        if names.guest(mount.id) not in found["devices"]:
            self._put(found, {**found["devices"], **volume_devices((mount,), self._ours)})

    def detach(self, instance: str, id: str) -> None:
        with contextlib.suppress(EngineMissing):
            found = self._engine.get("instances", names.guest(instance))
            left = {name: each for name, each in found["devices"].items() if name != names.guest(id)}
            if len(left) < len(found["devices"]):
                try:
                    self._put(found, left)
                except EngineFailed as error:
                    raise EngineBusy(
                        "The volume is in use in its instance",
                        hint="Close its files there",
                        context=error.context,
                    ) from error

    def snapshot(self, id: str, snapshot: str) -> int:
        """The bytes are stored with the volume before the snapshot, which keeps them."""
        place = self._volumes.place(id, "snapshots", names.guest(snapshot))
        with contextlib.suppress(EngineMissing):
            return int(self._engine.get(*place)["config"].get(guest.KEPT, "0"))
        flush()
        used = self._engine.get(*self._volumes.place(id, "state")).get("usage") or {}
        self._volumes.change(id, {guest.KEPT: str(max(0, int(used.get("used", 0))))})
        with contextlib.suppress(EngineTaken):
            self._engine.post(*self._volumes.place(id, "snapshots"), body={"name": names.guest(snapshot)})
        return int(self._engine.get(*place)["config"].get(guest.KEPT, "0"))

    def restore(self, id: str, snapshot: str) -> None:
        before = self._volumes.get(id)
        self._engine.put(*self._volumes.place(id), body={"restore": names.guest(snapshot)})
        if before is not None:  # the engine also restores the size
            kept = {key: before["config"][key] for key in ("size", SIZE) if key in before["config"]}
            self._volumes.change(id, kept)

    def delete_snapshot(self, id: str, snapshot: str) -> None:
        with contextlib.suppress(EngineMissing):
            self._engine.delete(*self._volumes.place(id, "snapshots", names.guest(snapshot)))

    def delete(self, id: str) -> None:
        with contextlib.suppress(EngineMissing):
            self._engine.delete(*self._volumes.place(id, "backups", NAME))
        self._volumes.delete(id)

    @contextlib.contextmanager
    def packed(self, id: str, copy_id: str) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The size of the files, and the packed volume. It is packed from a copy, which nobody changes and `delete`
        removes."""
        found = self._engine.get(*self._volumes.place(id))
        size = int(found["config"].get(SIZE, "0"))
        flush()
        try:
            self._volumes.copy(id, copy_id, {**found["config"], ID: copy_id})
            length = length_of_files(self._volumes.folder(copy_id))
            if length > size + HOLES_BYTES_MAX:  # the engine fills holes when it packs
                raise EngineRefused(
                    f"Its files would take {length >> 30} GiB without their holes, and it has {size >> 30} GiB",
                    hint="Remove sparse files, which look larger than they are: `find . -xdev -size +1G`",
                )
            place = self._volumes.place(copy_id, "backups")
            body = {
                "name": NAME,
                "compression_algorithm": "zstd",
                "volume_only": True,
                "optimized_storage": False,
            }
            self._engine.post(*place, body=body, seconds_max=PACK_SECONDS_MAX)
            yield length, self._engine.stream(*place, NAME, "export")
        finally:
            self.delete(copy_id)

    def keep(self, id: str, size_bytes: int, content: Iterable[bytes]) -> None:
        self._volumes.receive(id, content, seconds_max=PACK_SECONDS_MAX)
        self.create(id, size_bytes)

    def _put(self, found: Mapping[str, Any], given: Mapping[str, Mapping[str, str]]) -> None:
        config = {**found["config"], guest.FINGERPRINT: guest.fingerprint(found["config"], given)}
        fixed = {key: found[key] for key in ("profiles", "architecture", "description", "ephemeral")}
        self._engine.put("instances", found["name"], body={**fixed, "config": config, "devices": given})

    def _instances(self) -> Sequence[str]:
        found = self._engine.get("instances", recursion=1)
        return [each["config"][guest.ID] for each in found if guest.ID in each["config"]]
