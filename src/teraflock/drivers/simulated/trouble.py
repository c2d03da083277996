"""What befalls a simulated world from outside: the engine goes away, a host reboots, somebody meddles by hand.

For tests and demonstrations. Works on the world and not on a driver: a test can trouble a world that a server in
another process uses.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from teraflock.drivers.simulated.faults import Fault
from teraflock.drivers.simulated.life import at_rest
from teraflock.drivers.simulated.model import AddressTaken, Guest, Weather
from teraflock.drivers.simulated.world import World, weather
from teraflock.instance.driver import EngineMissing


class Trouble:
    def __init__(self, world: World) -> None:
        self._world = world

    def faults(self, *faults: Fault) -> None:
        """These, behind those there are."""
        self._change(lambda under: msgspec.structs.replace(under, faults=under.faults + faults))

    def no_more_faults(self) -> None:
        self._change(lambda under: msgspec.structs.replace(under, faults=()))

    def faults_left(self) -> tuple[Fault, ...]:
        with self._world.read() as turn:
            return weather(turn).faults

    def engine_goes_down(self) -> None:
        self._change(lambda under: msgspec.structs.replace(under, down=True))

    def engine_comes_back(self) -> None:
        """As it was: guests live on without their engine."""
        self._change(lambda under: msgspec.structs.replace(under, down=False))

    def host_goes_away(self, host: str) -> None:
        self._change(lambda under: msgspec.structs.replace(under, away=under.away | {host}))

    def host_comes_back(self, host: str, *, rebooted: bool = True) -> None:
        """After a reboot its guests stand still; after a mere loss of the line they ran on."""
        self._change(lambda under: msgspec.structs.replace(under, away=under.away - {host}))
        if rebooted:
            with self._world.write() as turn:
                for found in turn.on_host(Guest, host):
                    turn.put(at_rest(found))

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
            turn.remove(Guest, instance_id)
            for taken in turn.every(AddressTaken):
                if taken.instance_id == instance_id:
                    turn.remove(AddressTaken, taken.key)

    def dies(self, instance_id: str) -> None:
        """The guest goes down by itself."""
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
        """The engine gives notice, and has it no more from then on."""
        self._change_guest(instance_id, lambda found: msgspec.structs.replace(found, leaving_at=at))

    def _change(self, change: Callable[[Weather], Weather]) -> None:
        with self._world.write() as turn:
            turn.put(change(weather(turn)))

    def _change_guest(self, instance_id: str, change: Callable[[Guest], Guest]) -> None:
        with self._world.write() as turn:
            found = turn.get(Guest, instance_id)
            if found is None:
                raise EngineMissing("The simulated engine does not have this instance")
            turn.put(change(found))
