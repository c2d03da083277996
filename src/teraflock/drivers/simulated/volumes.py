"""Volumes on the simulated hosts. While an instance has a volume, its files are among those of the guest's disk."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from teraflock.drivers.simulated.calls import Calls, SimulatedCall
from teraflock.drivers.simulated.model import Guest, SimulatedVolume
from teraflock.instance.driver import FileKind, GuestFile, Handle, Machine
from teraflock.instance.engine_errors import EngineBusy, EngineMissing, EngineRefused
from teraflock.instance.model import InstanceId
from teraflock.instance.volume.model import VolumeMount, VolumeSeen


class SimulatedVolumes(Calls):
    def volumes(self) -> Sequence[VolumeSeen]:
        with self._asking("volumes") as call:
            ours = [each for each in call.turn.every(SimulatedVolume) if each.mark == self._mark]
            return [
                VolumeSeen(
                    volume_id=each.key,
                    host=each.host,
                    size_bytes=each.size_bytes,
                    users=tuple(guest.machine.id for guest in self._users(call, each.host, each.key)),
                )
                for each in ours
                if each.host not in call.weather.away
            ]

    def create_volume(self, host: str, volume_id: str, size_bytes: int) -> None:
        with self._changing("create_volume") as call:
            self._answers(call, host)
            found = call.turn.get(SimulatedVolume, volume_id)
            if found is None:
                found = SimulatedVolume(key=volume_id, host=host, mark=self._mark, size_bytes=size_bytes)
            if size_bytes < found.size_bytes:
                raise EngineRefused("A simulated volume cannot shrink")
            call.turn.put(replace(found, size_bytes=size_bytes))

    def attach_volume(self, host: str, instance_id: str, mount: VolumeMount) -> None:
        with self._changing("attach_volume") as call:
            found = self._find(call, Handle(InstanceId(instance_id), host))
            if found is None:
                raise EngineMissing("The simulated engine does not have this instance")
            if mount.id not in [each.id for each in found.machine.volumes] and not call.half:
                machine = replace(found.machine, volumes=(*found.machine.volumes, mount))
                files = {**found.disk.files, **self._files_at(call, mount)}
                call.turn.put(replace(found, machine=machine, disk=replace(found.disk, files=files)))

    def detach_volume(self, host: str, instance_id: str, volume_id: str) -> None:
        with self._changing("detach_volume") as call:
            found = self._find(call, Handle(InstanceId(instance_id), host))
            if found is None or call.half:
                return
            for mount in found.machine.volumes:
                if mount.id == volume_id:
                    found = self._written_back(call, found, mount)
            left = tuple(each for each in found.machine.volumes if each.id != volume_id)
            call.turn.put(replace(found, machine=replace(found.machine, volumes=left)))

    def snapshot_volume(self, host: str, volume_id: str, snapshot_id: str) -> int:
        with self._changing("snapshot_volume") as call:
            found = self._volume(call, host, volume_id)
            if snapshot_id not in found.snapshots:
                files = self._current(call, found)
                found = replace(found, snapshots={**found.snapshots, snapshot_id: files})
                if not call.half:
                    call.turn.put(found)
        return sum(map(len, found.snapshots[snapshot_id].values()))

    def restore_volume(self, host: str, volume_id: str, snapshot_id: str) -> None:
        with self._changing("restore_volume") as call:
            found = self._volume(call, host, volume_id)
            if self._users(call, host, volume_id):
                raise EngineBusy("A simulated instance has the volume")
            if snapshot_id not in found.snapshots:
                raise EngineMissing("The simulated engine does not have this snapshot")
            call.turn.put(replace(found, files=found.snapshots[snapshot_id]))

    def delete_volume_snapshot(self, host: str, volume_id: str, snapshot_id: str) -> None:
        with self._changing("delete_volume_snapshot") as call:
            found = self._volume(call, host, volume_id)
            kept = {id: files for id, files in found.snapshots.items() if id != snapshot_id}
            call.turn.put(replace(found, snapshots=kept))

    def delete_volume(self, host: str, volume_id: str) -> None:
        with self._changing("delete_volume") as call:
            self._answers(call, host)
            if self._users(call, host, volume_id):
                raise EngineBusy("A simulated instance has the volume")
            call.turn.remove(SimulatedVolume, volume_id)

    @contextmanager
    def pack_volume(self, host: str, volume_id: str, copy_id: str) -> Iterator[GuestFile]:
        with self._asking("pack_volume") as call:
            files = self._current(call, self._volume(call, host, volume_id))
        packed, size = msgspec.msgpack.encode(files), sum(map(len, files.values()))
        yield GuestFile(kind=FileKind.FILE, size_bytes=size, content=iter((packed,)))

    def keep_volume(self, host: str, volume_id: str, size_bytes: int, content: Iterable[bytes]) -> None:
        files = msgspec.msgpack.decode(b"".join(content), type=dict[str, bytes])
        with self._changing("keep_volume") as call:
            self._answers(call, host)
            kept = {} if call.half else files
            made = SimulatedVolume(
                key=volume_id, host=host, mark=self._mark, size_bytes=size_bytes, files=kept
            )
            call.turn.put(made)

    def _volume(self, call: SimulatedCall, host: str, volume_id: str) -> SimulatedVolume:
        self._answers(call, host)
        found = call.turn.get(SimulatedVolume, volume_id)
        if found is None or found.mark != self._mark:
            raise EngineMissing("The simulated engine does not have this volume")
        return found

    def _answers(self, call: SimulatedCall, host: str) -> None:
        if host in call.weather.away:
            raise EngineBusy("The simulated host does not answer")

    def _users(self, call: SimulatedCall, host: str, volume_id: str) -> list[Guest]:
        there = [each for each in call.turn.on_host(Guest, host) if each.mark == self._mark]
        return [each for each in there if any(mount.id == volume_id for mount in each.machine.volumes)]

    def _files_at(self, call: SimulatedCall, mount: VolumeMount) -> dict[str, bytes]:
        found = call.turn.get(SimulatedVolume, mount.id)
        if found is None:
            raise EngineMissing("The simulated engine does not have this volume")
        return {f"{mount.path}/{name}": content for name, content in found.files.items()}

    def _given(self, call: SimulatedCall, machine: Machine) -> dict[str, bytes]:
        """The files of all volumes of a new machine."""
        return {
            name: content
            for mount in machine.volumes
            for name, content in self._files_at(call, mount).items()
        }

    def _current(self, call: SimulatedCall, volume: SimulatedVolume) -> Mapping[str, bytes]:
        for guest in self._users(call, volume.host, volume.key):
            for mount in guest.machine.volumes:
                if mount.id == volume.key:
                    return _below(guest, mount.path)
        return volume.files

    def _written_back(self, call: SimulatedCall, found: Guest, mount: VolumeMount) -> Guest:
        """The guest without a volume, whose files are those of the volume again."""
        volume = call.turn.get(SimulatedVolume, mount.id)
        if volume is not None:
            call.turn.put(replace(volume, files=_below(found, mount.path)))
        start = f"{mount.path}/"
        left = {name: content for name, content in found.disk.files.items() if not name.startswith(start)}
        return replace(found, disk=replace(found.disk, files=left))


def _below(guest: Guest, path: str) -> dict[str, bytes]:
    start = f"{path}/"
    files = guest.disk.files
    return {name.removeprefix(start): files[name] for name in files if name.startswith(start)}
