"""The driver protocol on one host's LXD or Incus. Every call may be made twice; see `instance/driver.py`.

The engine keeps all that has to be known of an instance (its id, ports, host key), so this driver remembers nothing and
any number of processes may drive the same engine.
"""

import contextlib
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import TeraflockError
from teraflock.drivers.lxd import confinement, files, guest, ids, names, nvidia, processors, setup, veths
from teraflock.drivers.lxd import exec as execution
from teraflock.drivers.lxd.confinement import Surface
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.hand_over import HandOver
from teraflock.drivers.lxd.images import Images
from teraflock.drivers.lxd.moulds import STOCK_RANGES, Moulds, remove
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.network import Networks
from teraflock.drivers.lxd.pool import Pool
from teraflock.drivers.lxd.purge import purge
from teraflock.drivers.lxd.rest import Client
from teraflock.drivers.lxd.throwaway import Throwaway
from teraflock.fleet.model import DiskLimits, GpuKind, HostReport
from teraflock.instance.driver import (
    BOOT_TIME_MAX,
    PATIENCE,
    Capability,
    CommandState,
    DoesNotBoot,
    EngineRefused,
    GuestFile,
    Handle,
    Machine,
    MachineType,
    Network,
    Port,
    Ran,
    Readiness,
    Sent,
    Sighting,
)

STOP_SECONDS: Final = (4, 20)
"""For an orderly end, asked for twice: a guest that has only just started misses the first. Then the plug is pulled."""
PULL_SECONDS_MAX: Final = 30
READY_SECONDS_MAX: Final = 2.0
KNOCK_SECONDS: Final = 0.1
KNOCK_AGAIN_SECONDS: Final = 0.01
SETTLE_TRIES_MAX: Final = 3
LOG_BYTES_MAX: Final = 1 << 16
EXIT_BYTES_MAX: Final = 16
COMMAND_LOG: Final = "/var/log/teraflock/command.log"
USER_DATA_LOG: Final = "/var/log/teraflock/user-data.log"
FLUSH_SECONDS_MAX: Final = 20.0
SSH: Final = 22
POOL: Final = setup.PoolWish()
SWEEP_SECONDS: Final = 300.0
TELL_SECONDS_MAX: Final = 10.0


class Lxd:
    """One engine on this host, within our own project of it."""

    capabilities = frozenset(
        {
            Capability.PLACEMENT,
            Capability.CREATE_STOPPED,
            Capability.LIVE_RESIZE,
            Capability.STOP,
            Capability.SNAPSHOTS,
            Capability.EXEC,
            Capability.FILES,
            Capability.IMAGES_FROM_INSTANCES,
            Capability.BUILDS,
            Capability.TRAFFIC,
        }
    )
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
    ) -> None:
        """`report` tells of this host; `now` is the time in seconds, for the date of an image.

        `driver_folder`: where copies of the cards' libraries lie; none where the engine brings them into guests.
        `hand_over` cleans cards before another project gets them; none: nobody does.
        `stock`: how many moulds of each image are made ahead of time.
        """
        self.site = site
        self._ours = Names(installation)
        self._report = report
        self._host = Client(socket_path)
        self._engine = Client(socket_path, project=self._ours.project)
        self._pool = pool
        self._driver_folder = driver_folder
        self._hand_over = hand_over
        self.pool = Pool(self._host, self._ours.pool)
        self._swept_at = 0.0
        self.networks = Networks(self._host, self._ours, way_out=way_out)
        self._surface = surface
        self._ranges = ids.Ranges(installation, ranges_folder)
        moulds = Moulds(self._engine, self._ours, image_cache, self._ranges, stock=stock)
        self._images = Images(self._engine, self._ours, image_cache, moulds, now=now)

    def set_up(self) -> None:
        """Our project, our pool, our firewall: what must stand before the first instance, and after a reboot."""
        setup.ensure(self._host, self._ours, self._pool)
        guests = [each for each in self._engine.get("instances", recursion=1) if guest.ID in each["config"]]
        self._ranges.adopt({each["name"]: each["config"].get("security.idmap.base", "") for each in guests})
        self.networks.rebuild()
        if self._driver_folder and self._report().gpus:
            # Before any guest starts: it may have been replaced while the host was down.
            nvidia.keep(self._driver_folder)

    def purge(self) -> None:
        """Remove all that this installation has in the engine and in the firewall."""
        purge(self._host, self._ours, self.networks)
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
        if not self.networks.stands():
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
        if self._driver_folder:  # slices come into guests by NVIDIA's toolkit alone
            report = replace(report, gpus=tuple(gpu for gpu in report.gpus if gpu.kind != GpuKind.MIG))
        return (report,)

    def allow_out(self, host: str, networks: tuple[str, ...]) -> None:
        self.networks.allow_out(networks)

    def prepare(self, machine: Machine) -> None:
        self.networks.ensure(machine.network)

    def make_unnamed(self, machine: Machine) -> None:
        """A guest like any other, which the loops do not take for an instance."""
        body = self._body(machine)
        config: Any = body["config"]
        del config[guest.ID]
        self.networks.admit(machine)
        self._engine.post("instances", body=body)

    def release(self, handle: Handle) -> None:
        """Give back the range of user ids of a guest that is gone."""
        self._ranges.release(names.guest(handle.instance_id))

    def create(self, machine: Machine) -> None:
        self._give_cards(machine)
        name, body = names.guest(machine.id), self._body(machine)
        self.networks.admit(machine)
        try:
            self._engine.post("instances", body=body)
        except EngineTaken:
            if self._complete(machine.handle):
                return
            remove(self._engine, name)  # a crash left part of it, and nothing of it ever ran
            self._engine.post("instances", body=body)

    def start(self, handle: Handle) -> None:
        name = names.guest(handle.instance_id)
        body = {"action": "start", "timeout": 30}
        try:
            self._engine.put("instances", name, "state", body=body)
        except EngineRefused:
            if self._status(name) == "Running":
                return
            if not self._unlink(name):
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
                "The instance's system went down again right after its start",
                hint="`tera logs --console` shows what it said; try another image",
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
            self._stopped(name, PULL_SECONDS_MAX, force=True)

    def delete(self, handle: Handle) -> None:
        name = names.guest(handle.instance_id)
        address = bridge = ""
        with contextlib.suppress(EngineMissing):
            found = self._engine.get("instances", name)
            address, bridge = guest.address_of(found), found["devices"].get("eth0", {}).get("network", "")
            self.networks.close(guest.ports_from(found["config"].get(guest.PORTS, "")))
            remove(self._engine, name)
        self.networks.dismiss(handle.instance_id, address, bridge)
        self._ranges.release(name)

    def resize(self, machine: Machine) -> None:
        name = names.guest(machine.id)
        found = self._engine.get("instances", name)
        if guest.is_new_run(found, machine):
            self._forget_run(machine)
        running = found["status"] == "Running"
        self._give_cards(machine, has=guest.sighting(found, "").slots or () if running else ())
        index = self._ranges.take(name, spare=STOCK_RANGES)
        self.networks.admit(machine)
        self._engine.put(
            "instances", name, body=guest.resized(found, machine, self._ours, self._host_of(machine, index))
        )
        if running and found["config"].get(guest.DISK) != str(machine.disk_bytes):
            told = ["sh", "-c", "echo $0 > /etc/teraflock/disk-bytes", str(machine.disk_bytes)]
            with contextlib.suppress(TeraflockError):  # its next start tells it anyway
                self.run(machine.handle, told, stdin=b"", seconds_max=TELL_SECONDS_MAX)
        for _ in range(SETTLE_TRIES_MAX):
            if processors.settled(self._ours.project, name, machine.vcpus):
                return
            for number in (machine.vcpus + 1, machine.vcpus):  # only a change makes the engine spread anew
                self._engine.patch("instances", name, body={"config": {"limits.cpu": str(number)}})

    def look(self, handle: Handle) -> Sighting | None:
        try:
            found = self._engine.get("instances", names.guest(handle.instance_id))
        except EngineMissing:
            return None
        return guest.sighting(found, self._name_of_host())

    def sightings(self) -> Iterable[Sighting]:
        host = self._name_of_host()
        found = self._engine.get("instances", recursion=1)
        return [guest.sighting(each, host) for each in found if guest.ID in each["config"]]

    def sent(self, handle: Handle) -> Sent | None:
        return next((each for each in self.all_sent() if each.instance_id == handle.instance_id), None)

    def all_sent(self) -> Sequence[Sent]:
        return self.networks.sent()

    def retire(self, network: Network) -> None:
        self.networks.remove(network)

    def run(self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float) -> Ran:
        name = names.guest(handle.instance_id)
        config = self._engine.get("instances", name)["config"]
        environment = msgspec.json.decode(config.get(guest.ENVIRONMENT, "{}"), type=dict[str, str])
        return execution.run(
            self._engine, name, command, environment=environment, stdin=stdin, seconds_max=seconds_max
        )

    def command_state(self, handle: Handle) -> CommandState | None:
        return self._state(handle, guest.COMMAND, "command.exit", COMMAND_LOG)

    def user_data_state(self, handle: Handle) -> CommandState | None:
        return self._state(handle, guest.USER_DATA, "first-boot.exit", USER_DATA_LOG)

    def file(self, handle: Handle, path: str) -> contextlib.AbstractContextManager[GuestFile]:
        return files.opened(self._engine, names.guest(handle.instance_id), path)

    def console(self, handle: Handle) -> bytes:
        try:
            written = self._engine.get_bytes("instances", names.guest(handle.instance_id), "console")
        except EngineRefused:
            return b""
        return written[-LOG_BYTES_MAX:]

    def snapshot(self, handle: Handle, snapshot_id: str) -> int:
        """What is written and shared with no other snapshot or image now is what this one will keep: noted on the
        instance before, so that the snapshot bears it, whoever asks again.
        """
        name, kept_as = names.guest(handle.instance_id), names.guest(snapshot_id)
        try:
            return self._kept_bytes(name, kept_as)
        except EngineMissing:
            flush()
            own_bytes = self._engine.get("instances", name, "state")["disk"].get("root", {}).get("usage", 0)
            self._engine.patch("instances", name, body={"config": {guest.KEPT: str(max(0, own_bytes))}})
        with contextlib.suppress(EngineTaken):
            body = {"name": kept_as, "stateful": False}
            self._engine.post("instances", name, "snapshots", body=body)
        return self._kept_bytes(name, kept_as)

    def restore(self, handle: Handle, snapshot_id: str) -> None:
        name = names.guest(handle.instance_id)
        self.stop(handle, force=True)
        before = self._engine.get("instances", name)
        self._engine.put("instances", name, body={"restore": names.guest(snapshot_id)})
        # The engine brings back limits and cards as well, and a card may be another's by now.
        after = self._engine.get("instances", name)
        self._engine.put("instances", name, body=guest.kept(before, after))

    def delete_snapshot(self, handle: Handle, snapshot_id: str) -> None:
        with contextlib.suppress(EngineMissing):
            self._engine.delete(
                "instances", names.guest(handle.instance_id), "snapshots", names.guest(snapshot_id)
            )

    def images(self) -> Mapping[str, int]:
        return self._images.held()

    def build_image(self, image_id: str, recipe: str) -> None:
        self._images.build(image_id, recipe)

    def publish(self, handle: Handle, image_id: str) -> None:
        self._images.publish(names.guest(handle.instance_id), image_id)

    def delete_image(self, image_id: str) -> None:
        self._images.delete(image_id)

    def probe(self, targets: Sequence[str]) -> dict[str, dict[str, str]]:
        """What `probe.py` says from inside a guest that is thrown away afterwards.

        `targets`: what it tries to reach, as `address:port`.
        """
        return Throwaway(self, self._engine, self._ours).probed(targets, self._images.built())

    def unconfined(self) -> list[str]:
        """The ids of guests that run without a range of user ids of their own: started by an earlier version."""
        found = self._engine.get("instances", recursion=1)
        return [
            each["config"][guest.ID]
            for each in found
            if guest.ID in each["config"] and each["status"] == "Running" and not _is_confined(each["config"])
        ]

    def _disk_limits(self) -> DiskLimits:
        limits = self.pool.limits()
        if limits is DiskLimits.LOST:
            self.pool.recount()
        if limits is DiskLimits.OFF and not any(True for _ in self.sightings()):
            return DiskLimits.HOLD  # the engine switches them on for the first disk
        return limits

    def _sweep(self) -> None:
        """Now and then, drop ranges of user ids that were claimed for guests that a crash kept from being made."""
        if time.monotonic() - self._swept_at > SWEEP_SECONDS:
            self._swept_at = time.monotonic()
            self._ranges.keep_only(self._engine.names("instances"))

    def moulds(self, image_id: str) -> Mapping[int, str]:
        """What guests of an image are copied from, by the index of the range it is ready for."""
        try:
            return self._images.moulds_of(image_id)
        except EngineMissing as error:
            raise EngineRefused(
                f"The host does not have the image `{image_id}`", hint="`tera image list` shows those it has"
            ) from error

    def _body(self, machine: Machine) -> dict[str, object]:
        """The guest as it is posted: with a range of its own, copied from a mould of that range if there is one."""
        moulds = self.moulds(machine.image)
        kept = (each for each in moulds if each >= 0)
        index = self._ranges.take(names.guest(machine.id), kept, spare=STOCK_RANGES)
        mould = moulds.get(index) or next(iter(moulds.values()))
        return guest.body(machine, self._ours, new_host_key(), mould, self._host_of(machine, index))

    def _host_of(self, machine: Machine, index: int) -> guest.Host:
        """`index`: of the machine's range of user ids."""
        confined = confinement.settings(index, self._surface)
        return guest.Host(confined=confined, driver=self._card_driver(machine), server=self._engine.server())

    def _give_cards(self, machine: Machine, has: Iterable[str] = ()) -> None:
        if self._hand_over and machine.gpus:
            self._hand_over.give(machine.gpus, machine.network.project_id, has=has)

    def _unlink(self, name: str) -> bool:
        """Remove the host's end of a guest's link that a killed engine left; whether there was one."""
        port = self._engine.get("instances", name)["devices"].get("eth0", {}).get("host_name", "")
        return bool(port) and veths.remove(port)

    def _card_driver(self, machine: Machine) -> str:
        """The folder with the cards' libraries as they are now; empty where the engine brings them into guests."""
        return str(nvidia.keep(self._driver_folder)) if self._driver_folder and machine.gpus else ""

    def _kept_bytes(self, name: str, snapshot: str) -> int:
        return int(self._engine.get("instances", name, "snapshots", snapshot)["config"].get(guest.KEPT, "0"))

    def _ports(self, name: str) -> tuple[Port, ...]:
        return guest.ports_from(self._engine.get("instances", name)["config"].get(guest.PORTS, ""))

    def _status(self, name: str) -> str:
        return str(self._engine.get("instances", name)["status"])

    def _complete(self, handle: Handle) -> bool:
        """Whether an instance that is there was ever started: one that was not may be half made."""
        config: dict[str, Any] = self._engine.get("instances", names.guest(handle.instance_id))["config"]
        return "volatile.last_state.power" in config

    def _stopped(self, name: str, seconds: int, *, force: bool) -> bool:
        """Whether it stands still in the end."""
        body = {"action": "stop", "timeout": seconds, "force": force}
        try:
            self._engine.put("instances", name, "state", body=body)
        except EngineMissing:
            raise
        except EngineRefused:
            if self._status(name) == "Stopped":
                return True
            if force:
                raise
            return False
        return True

    def _state(self, handle: Handle, key: str, exit_name: str, log: str) -> CommandState | None:
        """How far the program is that one key of the configuration holds."""
        name = names.guest(handle.instance_id)
        if not self._engine.get("instances", name)["config"].get(key):
            return None
        exit_code = files.tail(self._engine, name, _state_path(handle, exit_name), EXIT_BYTES_MAX)
        return CommandState(
            exit_code=guest.exit_code_from(exit_code),
            log=files.tail(self._engine, name, log, LOG_BYTES_MAX),
        )

    def _forget_run(self, machine: Machine) -> None:
        """Remove what the last run of the command left, so that the next start runs it anew."""
        name = names.guest(machine.id)
        self.stop(machine.handle, force=True)
        for path in (_state_path(machine.handle, "command.exit"), COMMAND_LOG):
            files.remove(self._engine, name, path)

    def _name_of_host(self) -> str:
        return socket.gethostname()


def _is_confined(config: Mapping[str, str]) -> bool:
    """By what the guest was started with, not by what its next start will bring."""
    return f'"Maprange":{ids.SIZE}}}' in config.get("volatile.idmap.current", "")


def _state_path(handle: Handle, name: str) -> str:
    """Where a guest keeps what it has done, under its own machine id."""
    return f"/var/lib/teraflock/{names.machine_id(handle.instance_id)}/{name}"


def flush() -> None:
    """Let what guests wrote get to the disks: only then does a pool count it. Not for longer than it may take."""
    flushing = subprocess.Popen(["sync"], stdin=subprocess.DEVNULL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        flushing.wait(FLUSH_SECONDS_MAX)


def new_host_key() -> guest.HostKey:
    with tempfile.TemporaryDirectory(prefix="tera-key-") as folder:
        path = Path(folder) / "key"
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
        public = path.with_suffix(".pub").read_text("ascii").strip()
        return guest.HostKey(path.read_text("ascii"), public)


def answers_ssh(address: str, seconds_max: float) -> bool:
    """Whether an SSH server says its name there, asked again and again for a moment."""
    until = time.monotonic() + seconds_max
    while (left := until - time.monotonic()) > 0:
        try:
            # A first packet that is lost while the guest comes up is sent again after a second: knock anew instead.
            with socket.create_connection((address, SSH), timeout=min(left, KNOCK_SECONDS)) as connection:
                connection.settimeout(left)
                return connection.recv(4) == b"SSH-"
        except OSError:
            time.sleep(KNOCK_AGAIN_SECONDS)
    return False
