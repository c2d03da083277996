"""The simulated engine: a `ComputeDriver` over a world that exists only as data.

It behaves like own hosts: the caller places, limits change live, and a guest boots quickly. `cloud.py`
behaves like a public cloud. All durations use the clock that is passed in.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Final, NoReturn

import msgspec

from teraflock.base.clock import Clock
from teraflock.drivers.simulated import guest as inside
from teraflock.drivers.simulated import telemetry
from teraflock.drivers.simulated.calls import SimulatedCall
from teraflock.drivers.simulated.datasets import SimulatedDatasets
from teraflock.drivers.simulated.disks import Disks
from teraflock.drivers.simulated.faults import Kind, error, raise_killed
from teraflock.drivers.simulated.fleet import divided
from teraflock.drivers.simulated.life import (
    Shown,
    as_of,
    at_rest,
    later,
    next_change,
    not_busy,
    sent,
    sent_by_balancer,
    sighting,
    started,
    without_run,
)
from teraflock.drivers.simulated.model import (
    AddressTaken,
    Births,
    DividedCard,
    Guest,
    NetworkThere,
    address_key,
    network_key,
)
from teraflock.drivers.simulated.networks import SimulatedNetworks
from teraflock.drivers.simulated.volumes import SimulatedVolumes
from teraflock.drivers.simulated.world import World
from teraflock.fleet.model import HostReport
from teraflock.fleet.slicing.rules import address_of
from teraflock.fleet.telemetry.model import HostReading
from teraflock.instance.driver import (
    BOOT_TIME_MAX,
    PATIENCE,
    Capability,
    Handle,
    Machine,
    MachineType,
    Made,
    Nic,
    Readiness,
    Sent,
    Sighting,
)
from teraflock.instance.engine_errors import DoesNotBoot, EngineBusy, EngineMissing, EngineRefused, NoRoom
from teraflock.instance.model import InstanceId
from teraflock.network.walls import Walls

OWN: Final = frozenset(Capability) - {Capability.NOTICE, Capability.BIDS}
DOES_NOT_BOOT: Final = "does-not-boot"
"""Guests of a recipe with this name, or of an image with this id, stop at once."""


class SimulatedEngine(Disks, SimulatedNetworks, SimulatedDatasets, SimulatedVolumes):
    def __init__(
        self,
        world: World,
        clock: Clock,
        hosts: tuple[HostReport, ...] = (),
        *,
        site: str = "simulated",
        mark: str = "",
        boot_seconds: float = 0.0,
        kill: Callable[[], NoReturn] = raise_killed,
    ) -> None:
        super().__init__(world, clock, hosts, mark=mark, kill=kill)
        self._site = site
        self._boot_seconds = boot_seconds
        self.walls = Walls()
        """What was enforced last."""
        self._shown = Shown()

    @property
    def site(self) -> str:
        return self._site

    @property
    def simulated(self) -> bool:
        return True

    @property
    def capabilities(self) -> frozenset[Capability]:
        return OWN

    @property
    def patience(self) -> timedelta:
        return PATIENCE

    def boot_time_max(self, machine: Machine) -> timedelta:
        return BOOT_TIME_MAX

    def types(self) -> Sequence[MachineType]:
        return ()

    def hosts(self) -> Sequence[HostReport]:
        with self._asking("hosts") as call:
            away = call.weather.away
            cards = call.turn.every(DividedCard)
        hosts = dict(self._hosts)
        for card in cards:
            hosts[card.host] = divided(hosts[card.host], card.address, card.profiles)
        there = [
            msgspec.structs.replace(host, allow_out=self._allowed_out.get(host.name, ()))
            for host in hosts.values()
            if host.name not in away
        ]
        if self._hosts and not there:
            raise error(Kind.ENGINE_DOWN)
        return there

    def readings(self) -> Sequence[HostReading]:
        with self._asking("readings") as call:
            guests = [as_of(each, call.now) for each in call.turn.every(Guest) if each.mark == self._mark]
        return telemetry.readings(self.hosts(), [each for each in guests if each and each.running], call.now)

    def slice_card(self, host: str, address: str, profiles: tuple[str, ...]) -> None:
        with self._changing("slice_card") as call:
            self._known(host)
            if any(each.running and _uses(each, address) for each in call.turn.on_host(Guest, host)):
                raise EngineBusy("A simulated instance uses the card", hint="Stop it first")
            divided(self._hosts[host], address, profiles)
            call.turn.put(DividedCard(host=host, address=address, profiles=profiles))

    def allow_out(self, host: str, networks: tuple[str, ...]) -> None:
        with self._asking("allow_out"):
            self._known(host)
        self._allowed_out[host] = networks

    def enforce(self, walls: Walls) -> None:
        with self._asking("enforce"):
            self.walls = walls

    def create(self, machine: Machine) -> Made | None:
        with self._changing("create", machine.handle) as call:
            self._known(machine.handle.host)
            found = self._find(call, machine.handle)
            if found is not None:
                not_busy(found, call.now)
            if found is not None and found.whole:
                return None
            first = call.turn.get(Guest, machine.id)
            is_second = first is not None and first.host != machine.handle.host
            if first is not None and is_second and first.host not in call.weather.away:
                raise EngineRefused("The simulated instance is already on another host")
            call.turn.put(msgspec.structs.replace(self._made(call, machine), is_second=is_second))
            for nic in machine.nics:
                key = address_key(self._mark, nic.network, nic.address)
                call.turn.put(AddressTaken(key=key, instance_id=machine.id))
        return None

    def _made(self, call: SimulatedCall, machine: Machine) -> Guest:
        for nic in machine.nics:
            self._check_free(call, machine, nic)
        image = self._image(call, machine.image)
        if image is None or not image.whole:
            raise EngineMissing("The simulated engine does not have this image")
        self._room(call, machine.handle.host)
        boots = DOES_NOT_BOOT not in (image.recipe, image.key)
        births = call.turn.get(Births, "births") or Births()
        call.turn.put(Births(count=births.count + 1))
        files = {**image.disk.files, **self._given(call, machine)}
        mounted = self._mounted(call, machine)
        disk = msgspec.structs.replace(image.disk, own_bytes=0, mounted=mounted, files=files)
        return Guest(
            machine=machine, mark=self._mark, whole=not call.half, boots=boots, disk=disk, born=births.count
        )

    def start(self, handle: Handle) -> None:
        with self._changing("start", handle) as call:
            found = self._guest(call, handle)
            if found.running:
                return
            self._alone_with_cards(call, found)
            up_at = later(call.now, self._boot_seconds)
            fails_at = call.now + (up_at - call.now) / 2 if call.fails_later else None
            call.turn.put(started(found, call.now, up_at, fails_at))

    def expose(self, machine: Machine) -> None:
        with self._changing("expose", machine.handle) as call:
            found = self._guest(call, machine.handle)
            wanted = {port.host_port for port in machine.ports}
            taken = {port.host_port for other in self._others(call, found) for port in other.ports}
            if found.host and wanted & taken:
                raise EngineRefused("A port of the simulated host already leads to another instance")
            if found.ports != machine.ports:
                ports = machine.ports[: len(machine.ports) // 2] if call.half else machine.ports
                call.turn.put(msgspec.structs.replace(found, ports=ports))

    def ready(self, machine: Machine) -> Readiness:
        with self._asking("ready", machine.handle) as call:
            found = self._guest(call, machine.handle)
            now = call.now
        if found.fails_at is not None and found.fails_at <= now:
            raise NoRoom("The simulated engine ran out of room", hint="Try again, or at another site")
        if not found.running:
            raise DoesNotBoot(
                "The simulated guest stopped right after it started", hint="Choose another image"
            )
        if found.up_at is None or now < found.up_at:
            return Readiness(ready=False)
        return Readiness(ready=True, host_key=inside.host_key(machine.id))

    def hide(self, handle: Handle) -> None:
        with self._changing("hide", handle) as call:
            found = self._find(call, handle)
            if found is not None and found.ports:
                call.turn.put(msgspec.structs.replace(found, ports=()))

    def stop(self, handle: Handle, *, force: bool) -> None:
        with self._changing("stop", handle) as call:
            found = self._find(call, handle)
            if found is None or not found.whole:
                return
            not_busy(found, call.now)
            if found.running:
                call.turn.put(at_rest(found))

    def _check_free(self, call: SimulatedCall, machine: Machine, nic: Nic) -> None:
        there = call.turn.get(NetworkThere, network_key(self._mark, nic.network, machine.handle.host))
        if there is None or not there.whole:
            raise EngineRefused("The simulated host does not have the project's network")
        taken = call.turn.get(AddressTaken, address_key(self._mark, nic.network, nic.address))
        if (
            taken is not None
            and taken.instance_id != machine.id
            and self._find(call, Handle(InstanceId(taken.instance_id), machine.handle.host))
        ):
            raise EngineRefused(f"Another simulated instance has the address {nic.address}")

    def delete(self, handle: Handle) -> None:
        with self._changing("delete", handle) as call:
            found = self._copy_on(call, handle)
            if found is None or found.mark != self._mark:
                return
            not_busy(found, call.now)
            if call.half:
                call.turn.put(msgspec.structs.replace(at_rest(found), whole=False, snapshots={}, ports=()))
                return
            for mount in found.machine.volumes:
                found = self._written_back(call, found, mount)
            call.turn.remove(Guest, found.key)
            for nic in found.machine.nics:
                key = address_key(self._mark, nic.network, nic.address)
                taken = call.turn.get(AddressTaken, key)
                if taken is not None and taken.instance_id == found.machine.id:
                    call.turn.remove(AddressTaken, key)

    def resize(self, machine: Machine) -> None:
        with self._changing("resize", machine.handle) as call:
            found = self._guest(call, machine.handle)
            old = found.machine
            self._may_become(call, found, machine)
            if machine.command and machine.command_run != old.command_run:
                found = without_run(found)
            new = msgspec.structs.replace(
                old,
                vcpus=machine.vcpus,
                ram_bytes=old.ram_bytes if call.half else machine.ram_bytes,
                disk_bytes=old.disk_bytes if call.half else machine.disk_bytes,
                gpus=machine.gpus,
                command_run=machine.command_run,
            )
            if new != old:
                call.turn.put(msgspec.structs.replace(found, machine=new))

    def look(self, handle: Handle) -> Sighting | None:
        with self._asking("look", handle) as call:
            found = self._find(call, handle)
        return None if found is None else sighting(found, call.now)

    def sightings(self) -> Iterable[Sighting]:
        with self._asking("sightings") as call:
            every = call.turn.every(Guest)
        away = call.weather.away
        shown = self._shown
        if not shown.is_still(every, away, call.now):
            there = (as_of(each, call.now) for each in every if each.mark == self._mark)
            found = [sighting(each, call.now) for each in there if each and each.host not in away]
            self._shown = shown = Shown(every, away, call.now, next_change(every, call.now), found)
        return shown.sightings

    def sent(self, handle: Handle) -> Sent | None:
        with self._asking("sent", handle) as call:
            found = self._find(call, handle)
        return None if found is None else sent(found)

    def all_sent(self) -> Iterable[Sent]:
        with self._asking("all_sent") as call:
            every = call.turn.every(Guest)
            balancers = self._balancers(call)
        there = (as_of(each, call.now) for each in every if each.mark == self._mark)
        guests = [sent(each) for each in there if each and each.host not in call.weather.away]
        return [*guests, *map(sent_by_balancer, balancers)]

    def _alone_with_cards(self, call: SimulatedCall, found: Guest) -> None:
        if not found.machine.gpus:
            return
        wanted = {gpu.slot for gpu in found.machine.gpus}
        others = self._others(call, found)
        if any(wanted & {gpu.slot for gpu in other.machine.gpus} for other in others if other.running):
            raise EngineRefused("Another running instance has a card of this simulated host")

    def _may_become(self, call: SimulatedCall, found: Guest, machine: Machine) -> None:
        old = found.machine
        if machine.disk_bytes < old.disk_bytes:
            raise EngineRefused("A disk cannot shrink")
        if found.running and Capability.LIVE_RESIZE not in self.capabilities:
            raise EngineRefused("The simulated cloud can resize only stopped instances")
        if found.running and machine.gpus != old.gpus:
            raise EngineRefused("Stop the simulated instance to change its cards")
        if machine.disk_bytes > old.disk_bytes:
            self._room(call, found.host)


def _uses(guest: Guest, address: str) -> bool:
    return any(address_of(gpu.slot) == address for gpu in guest.machine.gpus)
