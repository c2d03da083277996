"""The simulated engine's calls about the inside of a guest: programs, console, snapshots and images."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import msgspec

from teraflock.base.quantities import GIB, MIB
from teraflock.drivers.simulated import guest as inside
from teraflock.drivers.simulated import runs
from teraflock.drivers.simulated.calls import Calls, SimulatedCall
from teraflock.drivers.simulated.faults import Kind, error
from teraflock.drivers.simulated.life import as_of
from teraflock.drivers.simulated.model import Guest, SimulatedDisk, SimulatedImage
from teraflock.drivers.simulated.terminal import SimulatedTerminal
from teraflock.instance.driver import CommandState, FileKind, GuestFile, Handle, Ran
from teraflock.instance.engine_errors import EngineMissing, EngineRefused

RECIPE_BYTES: Final = 64 * MIB
PUBLISHED_BYTES: Final = GIB
LOG_BYTES_MAX: Final = 64 * 1024
TERMINAL_SECONDS_MAX: Final = 60


class Disks(Calls):
    def run(self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float) -> Ran:
        with self._changing("run", handle) as call:
            found = self._guest(call, handle)
            if not found.running:
                raise EngineRefused("The simulated instance is stopped")
            if runs.is_call(command):
                after, ran = runs.called(found, command, stdin, call.now)
                call.turn.put(after)  # also what its programs wrote since the last call
                return ran
            done = inside.execute(found.machine, found.disk, command, stdin)
            if done.seconds <= seconds_max and done.changes_anything:
                call.turn.put(inside.after(found, done))
        return inside.ran(done, seconds_max)

    def open_terminal(self, handle: Handle, *, columns: int, rows: int) -> SimulatedTerminal:
        with self._asking("open_terminal", handle) as call:
            found = self._guest(call, handle)
            if not found.running:
                raise EngineRefused("The simulated instance is stopped")
        run = partial(self.run, handle, stdin=b"", seconds_max=TERMINAL_SECONDS_MAX)
        return SimulatedTerminal(found.machine.hostname, run, columns=columns, rows=rows)

    def command_state(self, handle: Handle) -> CommandState | None:
        with self._asking("command_state", handle) as call:
            found = self._guest(call, handle)
        if not found.machine.command:
            return None
        return CommandState(exit_code=found.disk.command_exit, log=found.disk.command_log[-LOG_BYTES_MAX:])

    def user_data_state(self, handle: Handle) -> CommandState | None:
        with self._asking("user_data_state", handle) as call:
            found = self._guest(call, handle)
        if not found.machine.user_data:
            return None
        return CommandState(
            exit_code=found.disk.user_data_exit, log=found.disk.user_data_log[-LOG_BYTES_MAX:]
        )

    @contextmanager
    def file(self, handle: Handle, path: str) -> Iterator[GuestFile]:
        with self._asking("file", handle) as call:
            guest = self._guest(call, handle)
        found = inside.entry(guest.machine, guest.disk, path)
        if found is None:
            raise EngineMissing("The simulated guest has no such file")
        yield found

    def console(self, handle: Handle) -> bytes:
        with self._asking("console", handle) as call:
            found = self._find(call, handle)
        return b"" if found is None else found.console[-LOG_BYTES_MAX:]

    def snapshot(self, handle: Handle, snapshot_id: str) -> int:
        with self._changing("snapshot", handle) as call:
            found = self._guest(call, handle)
            if snapshot_id in found.snapshots:
                return found.snapshots[snapshot_id].own_bytes
            self._room(call, handle.host)
            if not call.half:
                kept = {**found.snapshots, snapshot_id: found.disk}
                disk = msgspec.structs.replace(found.disk, own_bytes=0)
                call.turn.put(msgspec.structs.replace(found, snapshots=kept, disk=disk))
        return found.disk.own_bytes

    def restore(self, handle: Handle, snapshot_id: str) -> None:
        with self._changing("restore", handle) as call:
            found = self._guest(call, handle)
            if snapshot_id not in found.snapshots:
                raise EngineMissing("The simulated engine does not have this snapshot")
            if found.running:
                raise EngineRefused("The simulated instance is running: stop it before you restore its disk")
            if not call.half:
                disk = msgspec.structs.replace(found.snapshots[snapshot_id], own_bytes=0)
                call.turn.put(msgspec.structs.replace(found, disk=disk))

    def delete_snapshot(self, handle: Handle, snapshot_id: str) -> None:
        with self._changing("delete_snapshot", handle) as call:
            found = self._find(call, handle)
            if found is not None and snapshot_id in found.snapshots and not call.half:
                kept = {name: disk for name, disk in found.snapshots.items() if name != snapshot_id}
                call.turn.put(msgspec.structs.replace(found, snapshots=kept))

    @contextmanager
    def pack_disk(self, handle: Handle, copy_id: str) -> Iterator[GuestFile]:
        with self._asking("pack_disk", handle) as call:
            found = self._guest(call, handle)
        content = msgspec.msgpack.encode(SimulatedDisk(files=found.disk.files))
        yield GuestFile(kind=FileKind.FILE, size_bytes=len(content), content=iter((content,)))

    def keep_image(self, image_id: str, content: Iterable[bytes]) -> None:
        packed = b"".join(content)
        with self._changing("keep_image") as call:
            disk = msgspec.msgpack.decode(packed, type=SimulatedDisk)
            self._make(call, image_id, "", len(packed), disk)

    def images(self) -> Mapping[str, int]:
        with self._asking("images") as call:
            every = call.turn.every(SimulatedImage)
        return {image.key: image.size_bytes for image in every if image.whole and image.mark == self._mark}

    def build_image(self, image_id: str, recipe: str) -> None:
        with self._changing("build_image") as call:
            self._make(call, image_id, recipe, RECIPE_BYTES, SimulatedDisk())

    def publish(self, handle: Handle, image_id: str) -> None:
        with self._changing("publish", handle) as call:
            found = self._guest(call, handle)
            held = self._image(call, image_id)
            if held is None or not held.whole:
                self._room(call, handle.host)
                source = self._image(call, found.machine.image)
                # A command that ended there runs again in guests of the new image.
                disk = SimulatedDisk(files=found.disk.files)
                self._make(call, image_id, source.recipe if source else "", PUBLISHED_BYTES, disk)

    def delete_image(self, image_id: str) -> None:
        with self._changing("delete_image") as call:
            held = self._image(call, image_id)
            if held is not None and call.half:
                call.turn.put(msgspec.structs.replace(held, whole=False))
            elif held is not None:
                call.turn.remove(SimulatedImage, image_id)

    def _make(
        self, call: SimulatedCall, image_id: str, recipe: str, size_bytes: int, disk: SimulatedDisk
    ) -> None:
        held = call.turn.get(SimulatedImage, image_id)
        if held is not None and held.mark != self._mark:
            raise EngineRefused("The simulated engine has another image with this name")
        if held is None or not held.whole or held.recipe != recipe:
            call.turn.put(
                SimulatedImage(
                    key=image_id,
                    mark=self._mark,
                    recipe=recipe,
                    size_bytes=size_bytes,
                    disk=disk,
                    whole=not call.half,
                )
            )

    def _room(self, call: SimulatedCall, host: str) -> None:
        if host in call.weather.full:
            raise error(Kind.NO_ROOM)

    def _others(self, call: SimulatedCall, found: Guest) -> list[Guest]:
        """Return the other guests on its host, including other installations' guests: cards and ports belong
        to the host."""
        there = (
            as_of(each, call.now) for each in call.turn.on_host(Guest, found.host) if each.key != found.key
        )
        return [each for each in there if each is not None]
