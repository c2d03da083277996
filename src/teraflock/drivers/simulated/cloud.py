"""The simulated cloud: it rents out machines of fixed types, and fails in the ways public clouds do.

- It chooses the host. A launch takes minutes, and may fail later.
- Listings lag: `sightings` and lookups by label show a new machine only after a while. Lookups by its own id
  find it at once.
- A response may be lost after the machine was created (a fault with `after`). A cloud with tokens then
  returns the same machine for the same token. A cloud without tokens creates a second one, so its driver waits
  until the first must be listed.
- Regions are sold out, the account reaches its quota, runs out of money or is locked out, prices change, and
  machines are reclaimed with and without notice (`trouble.py`).
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Final, NoReturn

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.drivers.simulated.calls import SimulatedCall
from teraflock.drivers.simulated.engine import DOES_NOT_BOOT, SimulatedEngine
from teraflock.drivers.simulated.faults import Kind, error, raise_killed
from teraflock.drivers.simulated.life import as_of, later, not_busy, sighting, started
from teraflock.drivers.simulated.model import Births, Guest, SimulatedDisk, Weather, price_key
from teraflock.drivers.simulated.types import TYPES, parse
from teraflock.drivers.simulated.world import Turn, World
from teraflock.instance.driver import (
    GRACE,
    Capability,
    Endpoint,
    Handle,
    Machine,
    MachineType,
    Made,
    Readiness,
    Rental,
    Sighting,
)
from teraflock.instance.engine_errors import EngineBusy, EngineMissing, EngineRefused, NoRoom

CLOUD: Final = frozenset(Capability) - {
    Capability.PLACEMENT,
    Capability.LIVE_RESIZE,
    Capability.CREATE_STOPPED,
    Capability.BUILDS,
    Capability.BALANCER,
    Capability.TELEMETRY,
    Capability.DATASETS,
    Capability.VOLUMES,
}
USER: Final = "ubuntu"
PATIENCE: Final = timedelta(minutes=10)


class SimulatedCloud(SimulatedEngine):
    def __init__(
        self,
        world: World,
        clock: Clock,
        *,
        types: str = TYPES,
        site: str = "simulated-cloud",
        mark: str = "",
        boot_seconds: float = 0.0,
        launch_seconds: float = 90.0,
        listing_seconds: float = 0.0,
        tokens: bool = True,
        capabilities: frozenset[Capability] = CLOUD,
        kill: Callable[[], NoReturn] = raise_killed,
    ) -> None:
        """`launch_seconds` is the time until a machine begins to boot, `listing_seconds` until listings show
        it.

        `tokens` is whether the cloud honours launch tokens.
        """
        super().__init__(world, clock, site=site, mark=mark, boot_seconds=boot_seconds, kill=kill)
        self._types = parse(types)
        self._launch_seconds = launch_seconds
        self._listing_seconds = listing_seconds
        self._tokens = tokens
        self._capabilities = capabilities

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._capabilities

    @property
    def patience(self) -> timedelta:
        return PATIENCE

    def boot_time_max(self, machine: Machine) -> timedelta:
        return timedelta(seconds=2 * (self._launch_seconds + self._boot_seconds)) + PATIENCE

    def types(self) -> Sequence[MachineType]:
        return self._types

    def create(self, machine: Machine) -> Made:
        rental = machine.rental
        if rental is None:
            raise EngineRefused("The simulated cloud needs a machine type, and none was given")
        with self._changing("create", machine.handle) as call:
            found = self._already(call, machine, rental)
            if found is None or not found.whole:
                found = self._rented(call, machine, rental, found)
                call.turn.put(found)
        return self._rental_of(call.weather, found)

    def _already(self, call: SimulatedCall, machine: Machine, rental: Rental) -> Guest | None:
        """Return the machine with this token. Give back the instance's older machines first."""
        found = None
        for each in self._of(call, machine.handle.instance_id):
            is_same = each.machine.rental is not None and each.machine.rental.token == rental.token
            is_listed = each.listed_at is None or each.listed_at <= call.now
            if is_same and (is_listed or self._tokens):
                not_busy(each, call.now)
                found = each
            elif not is_same and is_listed:
                call.turn.remove(Guest, each.key)
        if found is None and not self._tokens and rental.asked_at and call.now - rental.asked_at < GRACE:
            raise EngineBusy(
                "The simulated cloud may have launched this machine already",
                hint="Teraflock checks again before it retries",
            )
        return found

    def _rented(self, call: SimulatedCall, machine: Machine, rental: Rental, found: Guest | None) -> Guest:
        """Create a machine, or complete an incomplete one."""
        self._check_account(call)
        self._check_offer(call, rental)
        image = self._image(call, machine.image)
        if not (image and image.whole) and not machine.recipe:
            raise EngineMissing("The simulated cloud does not have this image")
        recipe = image.recipe if image else machine.recipe
        births = call.turn.get(Births, "births") or Births()
        call.turn.put(Births(count=births.count + 1))
        made = Guest(
            machine=machine,
            mark=self._mark,
            whole=not call.half,
            boots=DOES_NOT_BOOT not in (recipe, machine.image),
            disk=replace(image.disk, own_bytes=0) if image else SimulatedDisk(),
            born=births.count,
            remote_id=found.remote_id if found else f"sim-{births.count:06d}",
            listed_at=later(call.now, self._listing_seconds),
        )
        return made if call.half else self._begun(call, made)

    def _begun(self, call: SimulatedCall, found: Guest) -> Guest:
        begins_at = later(call.now, self._launch_seconds)
        up_at = later(begins_at, self._boot_seconds)
        fails_at = call.now + (up_at - call.now) / 2 if call.fails_later else None
        return started(found, begins_at, up_at, fails_at)

    def _check_account(self, call: SimulatedCall) -> None:
        under = call.weather
        if under.broke:
            raise error(Kind.NO_MONEY)
        held = sum(1 for each in call.turn.every(Guest) if as_of(each, call.now) is not None)
        if under.machines_max is not None and held >= under.machines_max:
            raise error(Kind.OVER_QUOTA)

    def _check_offer(self, call: SimulatedCall, rental: Rental) -> None:
        price = self._price(call.weather, rental)
        if price is None:
            raise EngineRefused(f"The simulated cloud has no `{rental.type}` in `{rental.region}`")
        limit, bid = rental.price_limit_micros_per_hour, rental.bid_micros_per_hour
        if rental.region in call.weather.sold_out:
            raise NoRoom(f"The simulated region `{rental.region}` has no `{rental.type}` left")
        if limit is not None and price > limit:
            raise NoRoom(f"`{rental.type}` now costs more than the limit in `{rental.region}`")
        if rental.mode == "bid" and (bid is None or bid < price):
            raise NoRoom(f"The bid is too low for `{rental.type}` in `{rental.region}`")

    def _price(self, under: Weather, rental: Rental) -> int | None:
        changed = under.prices.get(price_key(rental.type, rental.region, rental.mode))
        if changed is not None:
            return changed
        for each in self._types:
            if (each.name, each.region) == (rental.type, rental.region):
                return each.prices.get(rental.mode)
        return None

    def start(self, handle: Handle) -> None:
        """Start a stopped machine if there is room. A new machine starts by itself."""
        with self._changing("start", handle) as call:
            found = self._guest(call, handle)
            if found.running or (found.starts and found.died):
                return
            rental = found.machine.rental
            if rental is not None and rental.region in call.weather.sold_out:
                raise NoRoom(f"The simulated region `{rental.region}` has no `{rental.type}` left")
            call.turn.put(self._begun(call, found))

    def ready(self, machine: Machine) -> Readiness:
        asked_at = machine.rental.asked_at if machine.rental else None
        try:
            readiness = super().ready(machine)
        except EngineMissing:
            if asked_at is None or self._clock.now() - asked_at >= GRACE:
                raise
            return Readiness(ready=False, doing="waiting for the cloud to list the machine")
        if not readiness.ready:
            return replace(readiness, doing="waiting for the simulated machine to boot")
        with self._asking("ready", machine.handle) as call:
            found = self._guest(call, machine.handle)
        address = f"198.19.{found.born >> 8 & 255}.{found.born & 255}"
        endpoints = {port.guest_port: Endpoint(address, port.guest_port) for port in machine.ports}
        return replace(readiness, endpoints=endpoints, user=USER)

    def delete(self, handle: Handle) -> None:
        """Delete the named machine, or all listed machines of the instance."""
        with self._changing("delete", handle) as call:
            for each in self._of(call, handle.instance_id):
                is_listed = each.listed_at is None or each.listed_at <= call.now
                if each.remote_id == handle.remote_id or (not handle.remote_id and is_listed):
                    not_busy(each, call.now)
                    self._end(call, each)

    def _end(self, call: SimulatedCall, found: Guest) -> None:
        if call.half:
            call.turn.put(replace(found, running=False, whole=False, snapshots={}, ports=()))
        else:
            call.turn.remove(Guest, found.key)

    def look(self, handle: Handle) -> Sighting | None:
        with self._asking("look", handle) as call:
            found = self._find(call, handle)
        return None if found is None else self._sighting(call, found)

    def sightings(self) -> Iterable[Sighting]:
        with self._asking("sightings") as call:
            every = call.turn.every(Guest)
        there = (as_of(each, call.now) for each in every if each.mark == self._mark)
        return [
            self._sighting(call, each)
            for each in there
            if each and (each.listed_at is None or each.listed_at <= call.now)
        ]

    def _sighting(self, call: SimulatedCall, found: Guest) -> Sighting:
        return replace(sighting(found, call.now), slots=None, made=self._rental_of(call.weather, found))

    def _rental_of(self, under: Weather, found: Guest) -> Made:
        rental = found.machine.rental
        return Made(
            remote_id=found.remote_id,
            zone=rental.zone or f"{rental.region}-a" if rental else "",
            price_micros_per_hour=self._price(under, rental) if rental else None,
            currency="USD",
        )

    def _of(self, call: SimulatedCall, instance_id: str) -> list[Guest]:
        """Return all machines rented for an instance and not reclaimed, listed or not."""
        every = (as_of(each, call.now) for each in call.turn.every(Guest) if each.mark == self._mark)
        return [each for each in every if each and each.machine.handle.instance_id == instance_id]

    def _find(self, call: SimulatedCall, handle: Handle) -> Guest | None:
        """Find a machine by its own id, or by its label among the listed ones."""
        for each in self._of(call, handle.instance_id):
            is_listed = each.listed_at is None or each.listed_at <= call.now
            if each.remote_id == handle.remote_id or (not handle.remote_id and is_listed):
                return each
        return None

    def _possible(self, turn: Turn, handle: Handle | None) -> Weather:
        under = super()._possible(turn, handle)
        if under.locked_out:
            raise error(Kind.BAD_CREDENTIALS)
        return under
