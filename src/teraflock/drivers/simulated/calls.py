"""The common part of every call to the simulated engine: faults, unavailable engines and hosts, and the
clock.

A call sees the world at one moment of the clock. Everything due by then has happened, such as a command that
ended or an instance that was reclaimed. Nothing here waits.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import NoReturn

import msgspec

from teraflock.base.clock import Clock
from teraflock.drivers.simulated.faults import Kind, SimulatedFault, When, error, raise_killed, taken
from teraflock.drivers.simulated.life import as_of, not_busy
from teraflock.drivers.simulated.model import Guest, SimulatedImage, Weather, copy_key
from teraflock.drivers.simulated.world import Turn, World, weather
from teraflock.fleet.model import HostReport
from teraflock.instance.driver import Handle
from teraflock.instance.engine_errors import EngineMissing, EngineRefused


class SimulatedCall(msgspec.Struct, frozen=True):
    """A call in progress."""

    turn: Turn
    now: datetime
    weather: Weather
    half: bool
    """A fault ends the call half way: do only a part."""
    fails_later: bool = False


class Calls:
    """Base class for the engine's methods."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        hosts: tuple[HostReport, ...],
        *,
        mark: str,
        kill: Callable[[], NoReturn] = raise_killed,
    ) -> None:
        self.world = world
        self._clock = clock
        self._hosts = {host.name: host for host in hosts}
        self._allowed_out: dict[str, tuple[str, ...]] = {}
        """Like a firewall, this is lost when the process ends. The loops set it again."""
        self._mark = mark
        self._kill = kill

    @contextmanager
    def _changing(self, call: str, handle: Handle | None = None) -> Iterator[SimulatedCall]:
        with self.world.write() as turn:
            under = self._possible(turn, handle)
            if not under.faults:  # the usual case: one transaction is enough
                yield SimulatedCall(turn, self._clock.now(), under, False)
                return
        fault = self._fault_of(call, handle)
        later = fault is not None and fault.kind is Kind.LATER
        half = fault is not None and fault.when is When.HALF and not later
        with self.world.write() as turn:
            yield SimulatedCall(turn, self._clock.now(), under, half, later)
        if fault is not None and not later:
            self._raise_fault(fault)

    @contextmanager
    def _asking(self, call: str, handle: Handle | None = None) -> Iterator[SimulatedCall]:
        with self.world.read() as turn:
            under = self._possible(turn, handle)
            if not under.faults:
                yield SimulatedCall(turn, self._clock.now(), under, False)
                return
        fault = self._fault_of(call, handle)
        if fault is not None and fault.kind is not Kind.LATER:
            self._raise_fault(fault)
        with self.world.read() as turn:
            yield SimulatedCall(turn, self._clock.now(), under, False)

    def _possible(self, turn: Turn, handle: Handle | None) -> Weather:
        """Return the conditions of the world if the call is possible at all."""
        under = weather(turn)
        if under.down or (handle is not None and handle.host in under.away):
            raise error(Kind.ENGINE_DOWN)
        return under

    def _fault_of(self, call: str, handle: Handle | None) -> SimulatedFault | None:
        """Return the fault for this call that takes effect after it begins."""
        fault = self._take(call, "" if handle is None else handle.instance_id)
        if fault is not None and fault.when is When.BEFORE and fault.kind is not Kind.LATER:
            self._raise_fault(fault)
        return fault

    def _take(self, call: str, instance: str) -> SimulatedFault | None:
        with self.world.write() as turn:
            under = weather(turn)
            fault, left = taken(under.faults, call, instance)
            if left != under.faults:
                turn.put(msgspec.structs.replace(under, faults=left))
        return fault

    def _raise_fault(self, fault: SimulatedFault) -> NoReturn:
        if fault.kind is Kind.KILLED:
            self._kill()
        raise error(fault.kind)

    def _find(self, call: SimulatedCall, handle: Handle) -> Guest | None:
        """Return the guest as of now, if it exists on its host and is ours."""
        found = self._copy_on(call, handle)
        return None if found is None or found.mark != self._mark else as_of(found, call.now)

    def _copy_on(self, call: SimulatedCall, handle: Handle) -> Guest | None:
        """Return the copy of an instance on the host of the handle; without a host, any copy."""
        first = call.turn.get(Guest, handle.instance_id)
        if first is not None and handle.host in ("", first.host):
            return first
        return call.turn.get(Guest, copy_key(handle.instance_id, handle.host))

    def _guest(self, call: SimulatedCall, handle: Handle) -> Guest:
        """Like `_find`, but the guest must be complete and idle."""
        found = self._find(call, handle)
        if found is None or found.host != handle.host:
            raise EngineMissing("The simulated engine does not have this instance")
        if not found.whole:
            raise EngineRefused("The simulated instance is incomplete")
        not_busy(found, call.now)
        return found

    def _image(self, call: SimulatedCall, image_id: str) -> SimulatedImage | None:
        found = call.turn.get(SimulatedImage, image_id)
        return None if found is None or found.mark != self._mark else found
