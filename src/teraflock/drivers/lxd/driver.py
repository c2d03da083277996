"""Implements the driver protocol for LXD or Incus on one host. Every call is idempotent; see
`instance/driver.py`.

The engine stores everything about an instance (id, ports, host key), so this driver keeps no state and any
number of processes may use the same engine.
"""

import contextlib
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from teraflock.base.clock import at_microseconds
from teraflock.base.errors import TeraflockError
from teraflock.drivers.lxd import (
    confinement,
    files,
    guest,
    ids,
    interfaces,
    names,
    processors,
    programs,
    setup,
    telemetry,
    veths,
)
from teraflock.drivers.lxd import exec as execution
from teraflock.drivers.lxd.balancers import LxdBalancers
from teraflock.drivers.lxd.capabilities import capabilities
from teraflock.drivers.lxd.cards import LxdCards
from teraflock.drivers.lxd.confinement import Surface
from teraflock.drivers.lxd.custom_volumes import CustomVolumes
from teraflock.drivers.lxd.datasets import LxdDatasets
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.flood import FloodLimits
from teraflock.drivers.lxd.hand_over import HandOver
from teraflock.drivers.lxd.images import LxdImages
from teraflock.drivers.lxd.moulds import STOCK_RANGES, Moulds, remove
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.network import FLOOD_LIMITS, WIRES, LxdNetworks
from teraflock.drivers.lxd.network_calls import NetworkCalls
from teraflock.drivers.lxd.pool import Pool
from teraflock.drivers.lxd.purge import purge
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.snapshots import LxdSnapshots
from teraflock.drivers.lxd.ssh import answers_ssh, new_host_key
from teraflock.drivers.lxd.storage_calls import StorageCalls
from teraflock.drivers.lxd.terminal import LxdTerminal
from teraflock.drivers.lxd.throwaway import Throwaway
from teraflock.drivers.lxd.transfers import end_transfers
from teraflock.drivers.lxd.volumes import LxdVolumes
from teraflock.fleet.model import DiskLimits, HostReport
from teraflock.fleet.telemetry.model import HostReading
from teraflock.instance.driver import (
    BOOT_TIME_MAX,
    PATIENCE,
    Capability,
    CommandState,
    FileKind,
    GuestFile,
    Handle,
    Machine,
    MachineType,
    Port,
    Ran,
    Readiness,
    Sent,
    Sighting,
)
from teraflock.instance.engine_errors import DoesNotBoot, EngineRefused

STOP_SECONDS: Final = (4, 20)
"""Timeouts for a clean shutdown. It is tried twice, because a guest that has just started misses the first
request. After that the guest is killed."""
KILL_SECONDS_MAX: Final = 30
READY_SECONDS_MAX: Final = 2.0
SETTLE_TRIES_MAX: Final = 3
POOL: Final = setup.PoolWish()
SWEEP_SECONDS: Final = 300.0
DISK_SIZE_SECONDS_MAX: Final = 10.0


class Lxd(NetworkCalls, StorageCalls):
    """One engine on this host. Everything is in our own project of the engine."""

    simulated = False
    patience = PATIENCE

    def __init__(
        self,
        socket_path: Path,
        installation: str,
        *,
        report: Callable[[], HostReport],
        image_cache: Path,
        now: Callable[[], int],
        driver_folder: Path | None = None,
        hand_over: HandOver | None = None,
        pool: setup.PoolWish = POOL,
        way_out: bool = True,
        surface: Surface = confinement.CLOSED,
        ranges_folder: Path = ids.FOLDER,
        stock: int = 0,
        site: str = "local",
        flood_limits: FloodLimits = FLOOD_LIMITS,
        host: str = "",
        wire_folder: Path = WIRES,
        member: str = "",
    ) -> None:
        """`report` describes this host. `now` returns the time in seconds, for the date of an image.

        `driver_folder` holds copies of the GPU libraries; None if the engine provides them to guests.
        `hand_over` cleans cards before another project gets them; None disables cleaning.
        `stock` is the number of moulds of each image to create ahead of time.
        `host` is the name of this host in sightings. Empty: the name of the machine.
        `member` is the engine's name in its cluster. Empty: it is in none.
        """
        self.site = site
        self._host_name = host
        self._ours = Names(installation, member)
        self._report = report
        self._now = now
        self._host = LxdClient(socket_path)
        self._engine = LxdClient(socket_path, project=self._ours.project, member=member)
        self._pool = pool
        self._cards = LxdCards(self._engine, driver_folder, hand_over)
        self.pool = Pool(self._host, self._ours.pool)
        self._swept_at = 0.0
        self.networks = LxdNetworks(
            self._host, self._ours, way_out=way_out, flood_limits=flood_limits, wire_folder=wire_folder
        )
        self.balancing = LxdBalancers(self._ours, self.networks)
        self._surface = surface
        self._ranges = ids.Ranges(installation, ranges_folder)
        moulds = Moulds(self._engine, self._ours, image_cache, self._ranges, stock=stock)
        self._snapshots = LxdSnapshots(self._engine)
        kept = CustomVolumes(self._engine, self._ours, self.pool)
        self.disks = LxdVolumes(self._engine, self._ours, kept)
        self.stored = LxdDatasets(kept, image_cache.with_name("datasets") / installation)
        self._images = LxdImages(self._engine, self._ours, image_cache, moulds, self.pool, now=now)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return capabilities()

    def set_up(self) -> None:
        """Create our project, pool and firewall. Needed before the first instance and after each reboot."""
        setup.ensure(self._host, self._ours, self._pool)
        guests = [each for each in self._engine.get("instances", recursion=1) if guest.ID in each["config"]]
        self._ranges.adopt({each["name"]: each["config"].get("security.idmap.base", "") for each in guests})
        self.networks.rebuild()
        if self._report().gpus:  # before any guest starts
            self._cards.keep_driver()

    def purge(self) -> None:
        """Remove everything that this installation has in the engine and in the firewall."""
        self.balancing.leave()
        purge(self._host, self._ours, self.networks)
        self.stored.leave()
        self._ranges.leave()

    def close(self) -> None:
        self._host.close()
        self._engine.close()

    def boot_time_max(self, machine: Machine) -> timedelta:
        return BOOT_TIME_MAX

    def types(self) -> tuple[MachineType, ...]:
        return ()

    def hosts(self) -> Sequence[HostReport]:
        self._host.get()
        if not self.networks.is_up_to_date():
            self.networks.rebuild()
        self._sweep()
        report = self._report()
        used, total = self.pool.space()
        report = replace(
            report,
            disk_bytes=total,
            disk_used_bytes=used,
            disk_limits=self._disk_limits(),
            allow_out=self.networks.allowed_out(),
        )
        return (report,)

    def readings(self) -> Sequence[HostReading]:
        guests = self._engine.get("instances", recursion=2)
        host = self._host_name or socket.gethostname()
        return (telemetry.reading(host, guests, at_microseconds(self._now() * 10**6)),)

    def slice_card(self, host: str, address: str, profiles: tuple[str, ...]) -> None:
        self._cards.divide(address, profiles)

    def prepare(self, machine: Machine) -> None:
        for nic in machine.nics:
            self.networks.ensure(nic.network)

    def create_without_id(self, machine: Machine) -> None:
        """Create a guest that the loops do not treat as an instance."""
        body = self._body(machine)
        config: Any = body["config"]
        del config[guest.ID]
        self.networks.admit(machine)
        self._engine.create_instance(body)

    def release(self, handle: Handle) -> None:
        """Release the user id range of a deleted guest."""
        self._ranges.release(names.guest(handle.instance_id))

    def create(self, machine: Machine) -> None:
        self._cards.give(machine)
        name, body = names.guest(machine.id), self._body(machine)
        self.networks.admit(machine)
        try:
            self._engine.create_instance(body)
        except EngineTaken:
            if self._complete(machine.handle):
                return
            remove(self._engine, name)  # a crash left an incomplete guest, which never ran
            self._engine.create_instance(body)

    def start(self, handle: Handle) -> None:
        name = names.guest(handle.instance_id)
        body = {"action": "start", "timeout": 30}
        try:
            self._engine.put("instances", name, "state", body=body)
        except EngineRefused:
            if self._status(name) == "Running":
                return
            if not veths.remove_links(interfaces.nics_in(self._engine.get("instances", name))):
                raise
            self._engine.put("instances", name, "state", body=body)

    def expose(self, machine: Machine) -> None:
        name = names.guest(machine.id)
        wanted = guest.ports_text(machine.ports)
        found = self._engine.get("instances", name)["config"].get(guest.PORTS, "")
        if found != wanted:
            self._engine.patch("instances", name, body={"config": {guest.PORTS: wanted}})
        self.networks.open(machine.address, machine.ports)

    def ready(self, machine: Machine) -> Readiness:
        name = names.guest(machine.id)
        if answers_ssh(machine.address, READY_SECONDS_MAX):
            key = self._engine.get("instances", name)["config"].get(guest.HOST_KEY, "")
            return Readiness(ready=True, host_key=key)
        if self._status(name) == "Stopped":
            raise DoesNotBoot(
                "The instance stopped right after it started",
                hint="See `tera logs --console`, or try another image",
            )
        return Readiness(ready=False)

    def hide(self, handle: Handle) -> None:
        name = names.guest(handle.instance_id)
        with contextlib.suppress(EngineMissing):
            ports = self._ports(name)
            if ports:
                self._engine.patch("instances", name, body={"config": {guest.PORTS: ""}})
                self.networks.close(ports)

    def stop(self, handle: Handle, *, force: bool) -> None:
        name = names.guest(handle.instance_id)
        with contextlib.suppress(EngineMissing):
            for seconds in () if force else STOP_SECONDS:
                if self._stopped(name, seconds, force=False):
                    return
            end_transfers(name)
            self._stopped(name, KILL_SECONDS_MAX, force=True)

    def delete(self, handle: Handle) -> None:
        name = names.guest(handle.instance_id)
        addresses, folders = tuple[str, ...](), tuple[str, ...]()
        with contextlib.suppress(EngineMissing):
            found = self._engine.get("instances", name)
            addresses, folders = interfaces.addresses_of(found), interfaces.folders_of(found)
            self.networks.close(guest.ports_from(found["config"].get(guest.PORTS, "")))
            remove(self._engine, name)
        self.networks.dismiss(handle.instance_id, addresses, folders)
        self._ranges.release(name)

    def resize(self, machine: Machine) -> None:
        name = names.guest(machine.id)
        found = self._engine.get("instances", name)
        if guest.is_new_run(found, machine):
            self.stop(machine.handle, force=True)
            programs.forget_command(self._engine, machine.id)
        running = found["status"] == "Running"
        self._cards.give(machine, has=guest.sighting(found, "").slots or () if running else ())
        index = self._ranges.take(name, spare=STOCK_RANGES)
        self.networks.admit(machine)
        self._engine.put(
            "instances", name, body=guest.resized(found, machine, self._ours, self._host_of(machine, index))
        )
        if running and found["config"].get(guest.DISK) != str(machine.disk_bytes):
            command = ["sh", "-c", "echo $0 > /etc/teraflock/disk-bytes", str(machine.disk_bytes)]
            with contextlib.suppress(TeraflockError):  # the next start writes it anyway
                self.run(machine.handle, command, stdin=b"", seconds_max=DISK_SIZE_SECONDS_MAX)
        for _ in range(SETTLE_TRIES_MAX):
            if processors.settled(self._ours.project, name, machine.vcpus):
                return
            for number in (machine.vcpus + 1, machine.vcpus):  # the engine reassigns only after a change
                self._engine.patch("instances", name, body={"config": {"limits.cpu": str(number)}})

    def look(self, handle: Handle) -> Sighting | None:
        try:
            found = self._engine.get("instances", names.guest(handle.instance_id))
        except EngineMissing:
            return None
        return guest.sighting(found, self._host_name or socket.gethostname())

    def sightings(self) -> Iterable[Sighting]:
        host = self._host_name or socket.gethostname()
        found = self._engine.get("instances", recursion=1)
        return [guest.sighting(each, host) for each in found if guest.ID in each["config"]]

    def sent(self, handle: Handle) -> Sent | None:
        return next((each for each in self.all_sent() if each.instance_id == handle.instance_id), None)

    def run(self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float) -> Ran:
        name = names.guest(handle.instance_id)
        return execution.run(self._engine, name, command, stdin=stdin, seconds_max=seconds_max)

    def open_terminal(self, handle: Handle, *, columns: int, rows: int) -> LxdTerminal:
        return LxdTerminal(self._engine, names.guest(handle.instance_id), columns=columns, rows=rows)

    def command_state(self, handle: Handle) -> CommandState | None:
        return programs.command_state(self._engine, handle.instance_id)

    def user_data_state(self, handle: Handle) -> CommandState | None:
        return programs.user_data_state(self._engine, handle.instance_id)

    def file(self, handle: Handle, path: str) -> contextlib.AbstractContextManager[GuestFile]:
        return files.opened(self._engine, names.guest(handle.instance_id), path)

    def console(self, handle: Handle) -> bytes:
        try:
            written = self._engine.get_bytes("instances", names.guest(handle.instance_id), "console")
        except EngineRefused:
            return b""
        return written[-programs.LOG_BYTES_MAX :]

    def snapshot(self, handle: Handle, snapshot_id: str) -> int:
        return self._snapshots.take(names.guest(handle.instance_id), names.guest(snapshot_id))

    def restore(self, handle: Handle, snapshot_id: str) -> None:
        self.stop(handle, force=True)
        self._snapshots.restore(names.guest(handle.instance_id), names.guest(snapshot_id))

    def delete_snapshot(self, handle: Handle, snapshot_id: str) -> None:
        self._snapshots.delete(names.guest(handle.instance_id), names.guest(snapshot_id))

    def images(self) -> Mapping[str, int]:
        return self._images.held()

    def build_image(self, image_id: str, recipe: str) -> None:
        self._images.build(image_id, recipe)

    def publish(self, handle: Handle, image_id: str) -> None:
        self._images.publish(names.guest(handle.instance_id), image_id)

    @contextlib.contextmanager
    def pack_disk(self, handle: Handle, copy_id: str) -> Iterator[GuestFile]:
        with self._images.packed(names.guest(handle.instance_id), copy_id) as content:
            yield GuestFile(kind=FileKind.FILE, content=content)

    def keep_image(self, image_id: str, content: Iterable[bytes]) -> None:
        self._images.keep(image_id, content)

    def delete_image(self, image_id: str) -> None:
        self._images.delete(image_id)

    def probe(self, targets: Sequence[str]) -> dict[str, dict[str, str]]:
        """Run `probe.py` in a temporary guest and return its results.

        `targets` are the addresses that it tries to reach, as `address:port`.
        """
        return Throwaway(self, self._engine, self._ours).probed(targets, self._images.built())

    def unconfined(self) -> list[str]:
        """Return the ids of running guests of an earlier version, without their own range of user ids."""
        found = self._engine.get("instances", recursion=1)
        return [
            each["config"][guest.ID]
            for each in found
            if guest.ID in each["config"]
            and each["status"] == "Running"
            and not ids.is_confined(each["config"])
        ]

    def _disk_limits(self) -> DiskLimits:
        limits = self.pool.limits()
        if limits is DiskLimits.LOST:
            self.pool.recount()
        if limits is DiskLimits.OFF and not any(True for _ in self.sightings()):
            return DiskLimits.HOLD  # the engine turns them on with the first disk
        return limits

    def _sweep(self) -> None:
        """From time to time, release ranges claimed for guests that were never created because of a crash."""
        if time.monotonic() - self._swept_at > SWEEP_SECONDS:
            self._swept_at = time.monotonic()
            self._ranges.keep_only(self._engine.names("instances"))

    def moulds(self, image_id: str) -> Mapping[int, str]:
        """Return the moulds of an image, by the index of their range."""
        try:
            return self._images.moulds_of(image_id)
        except EngineMissing as error:
            raise EngineRefused(
                f"The host does not have the image `{image_id}`",
                hint="List the available images with `tera image list`",
            ) from error

    def _body(self, machine: Machine) -> dict[str, object]:
        """Return the request that creates the guest: with its own range, copied from a mould of that range if
        one exists."""
        moulds = self.moulds(machine.image)
        kept = (each for each in moulds if each >= 0)
        index = self._ranges.take(names.guest(machine.id), kept, spare=STOCK_RANGES)
        mould = moulds.get(index) or next(iter(moulds.values()))
        return guest.body(machine, self._ours, new_host_key(), mould, self._host_of(machine, index))

    def _host_of(self, machine: Machine, index: int) -> guest.GuestHost:
        """`index` is that of the machine's range of user ids."""
        confined = confinement.settings(index, self._surface)
        driver, slices = self._cards.of(machine)
        return guest.GuestHost(confined=confined, driver=driver, slices=slices, server=self._engine.server())

    def _ports(self, name: str) -> tuple[Port, ...]:
        return guest.ports_from(self._engine.get("instances", name)["config"].get(guest.PORTS, ""))

    def _status(self, name: str) -> str:
        return str(self._engine.get("instances", name)["status"])

    def _complete(self, handle: Handle) -> bool:
        """Check whether an existing instance was ever started. If not, it may be incomplete."""
        config: dict[str, Any] = self._engine.get("instances", names.guest(handle.instance_id))["config"]
        return "volatile.last_state.power" in config

    def _stopped(self, name: str, seconds: int, *, force: bool) -> bool:
        """Stop a guest. Return whether it is stopped afterwards."""
        body = {"action": "stop", "timeout": seconds, "force": force}
        try:
            self._engine.put("instances", name, "state", body=body)
        except EngineMissing:
            raise
        except EngineRefused:
            if (stopped := self._status(name) == "Stopped") or not force:
                return stopped
            raise
        return True
