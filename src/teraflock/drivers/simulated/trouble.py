"""Failures from outside a simulated world: the engine goes down, a host reboots, someone changes things
manually.

For tests and demonstrations. It changes the world and not a driver, so a test can affect a world that a
server in another process uses.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from teraflock.drivers.simulated.faults import SimulatedFault
from teraflock.drivers.simulated.life import at_rest
from teraflock.drivers.simulated.model import AddressTaken, Guest, SimulatedBalancer, Weather, price_key
from teraflock.drivers.simulated.world import Turn, World, weather
from teraflock.instance.engine_errors import EngineMissing


class Trouble:
    def __init__(self, world: World) -> None:
        self._world = world

    def faults(self, *faults: SimulatedFault) -> None:
        """Add faults after the existing ones."""
        self._change(lambda under: msgspec.structs.replace(under, faults=under.faults + faults))

    def no_more_faults(self) -> None:
        self._change(lambda under: msgspec.structs.replace(under, faults=()))

    def faults_left(self) -> tuple[SimulatedFault, ...]:
        with self._world.read() as turn:
            return weather(turn).faults

    def engine_goes_down(self) -> None:
        self._change(lambda under: msgspec.structs.replace(under, down=True))

    def engine_comes_back(self) -> None:
        """Bring the engine back. Its guests kept running."""
        self._change(lambda under: msgspec.structs.replace(under, down=False))

    def host_goes_away(self, host: str) -> None:
        self._change(lambda under: msgspec.structs.replace(under, away=under.away | {host}))

    def host_comes_back(self, host: str, *, rebooted: bool = True) -> None:
        """Bring a host back. After a reboot its guests are stopped; after a lost connection they kept
        running."""
        self._change(lambda under: msgspec.structs.replace(under, away=under.away - {host}))
        if rebooted:
            self.power_off(host)

    def power_off(self, host: str) -> None:
        """Stop everything that runs on a host. Disks stay."""
        with self._world.write() as turn:
            for found in turn.on_host(Guest, host):
                turn.put(at_rest(found))
            for ended in turn.on_host(SimulatedBalancer, host):
                turn.remove(SimulatedBalancer, ended.key)

    def balancer_sends(self, id: str, size_bytes: int) -> None:
        """A running balancer sends this much more out of its host."""
        with self._world.write() as turn:
            for found in turn.every(SimulatedBalancer):
                if found.spec.id == id and found.running:
                    turn.put(msgspec.structs.replace(found, sent_bytes=found.sent_bytes + size_bytes))

    def pool_is_full(self, host: str, *, full: bool = True) -> None:
        self._change(
            lambda under: msgspec.structs.replace(
                under, full=under.full | {host} if full else under.full - {host}
            )
        )

    def stopped_by_hand(self, instance_id: str) -> None:
        self._change_guest(instance_id, at_rest)

    def deleted_by_hand(self, instance_id: str) -> None:
        with self._world.write() as turn:
            for found in _guests(turn, instance_id):
                turn.remove(Guest, found.key)
            for taken in turn.every(AddressTaken):
                if taken.instance_id == instance_id:
                    turn.remove(AddressTaken, taken.key)

    def dies(self, instance_id: str) -> None:
        """The guest stops by itself."""
        self._change_guest(instance_id, lambda found: msgspec.structs.replace(at_rest(found), died=True))

    def limits_changed_by_hand(self, instance_id: str, *, vcpus: int, ram_bytes: int) -> None:
        def change(found: Guest) -> Guest:
            machine = msgspec.structs.replace(found.machine, vcpus=vcpus, ram_bytes=ram_bytes)
            return msgspec.structs.replace(found, machine=machine)

        self._change_guest(instance_id, change)

    def cards_taken_by_hand(self, instance_id: str) -> None:
        def change(found: Guest) -> Guest:
            return msgspec.structs.replace(found, machine=msgspec.structs.replace(found.machine, gpus=()))

        self._change_guest(instance_id, change)

    def busy_until(self, instance_id: str, until: datetime) -> None:
        self._change_guest(instance_id, lambda found: msgspec.structs.replace(found, busy_until=until))

    def taken_back(self, instance_id: str, at: datetime) -> None:
        """The engine announces that it reclaims the instance, and removes it at that time."""
        self._change_guest(instance_id, lambda found: msgspec.structs.replace(found, leaving_at=at))

    # Clouds

    def locked_out(self, *, is_so: bool = True) -> None:
        """Reject the account's credentials, or accept them again."""
        self._change(lambda under: msgspec.structs.replace(under, locked_out=is_so))

    def runs_out_of_money(self, *, is_so: bool = True) -> None:
        self._change(lambda under: msgspec.structs.replace(under, broke=is_so))

    def quota(self, machines_max: int | None) -> None:
        self._change(lambda under: msgspec.structs.replace(under, machines_max=machines_max))

    def sold_out(self, *regions: str) -> None:
        """Set the regions without capacity; all others have capacity."""
        self._change(lambda under: msgspec.structs.replace(under, sold_out=frozenset(regions)))

    def price_changes(self, type: str, region: str, mode: str, micros_per_hour: int, now: datetime) -> None:
        """Change a price from now on, for running machines too. An instance with a lower bid loses its
        machine at once."""
        key = price_key(type, region, mode)
        self._change(
            lambda under: msgspec.structs.replace(under, prices={**under.prices, key: micros_per_hour})
        )
        with self._world.write() as turn:
            for found in turn.every(Guest):
                rental = found.machine.rental
                if rental is None or price_key(rental.type, rental.region, rental.mode) != key:
                    continue
                if (rental.bid_micros_per_hour or micros_per_hour) < micros_per_hour:
                    turn.put(msgspec.structs.replace(found, leaving_at=now))

    def all_is_well(self) -> None:
        """Remove all faults and problems. Prices stay as they are."""
        self._change(lambda under: Weather(prices=under.prices))

    def _change(self, change: Callable[[Weather], Weather]) -> None:
        with self._world.write() as turn:
            turn.put(change(weather(turn)))

    def _change_guest(self, instance_id: str, change: Callable[[Guest], Guest]) -> None:
        with self._world.write() as turn:
            guests = _guests(turn, instance_id)
            if not guests:
                raise EngineMissing("The simulated engine does not have this instance")
            for found in guests:
                turn.put(change(found))


def _guests(turn: Turn, instance_id: str) -> list[Guest]:
    """Return the guests of an instance. A rented machine is stored under its own id."""
    found = turn.get(Guest, instance_id)
    if found is not None and found.host not in weather(turn).away:
        return [found]
    return [each for each in turn.every(Guest) if each.machine.handle.instance_id == instance_id]
