"""The projects' networks on the simulated hosts."""

from teraflock.drivers.simulated.calls import Calls, SimulatedCall
from teraflock.drivers.simulated.life import as_of
from teraflock.drivers.simulated.model import Guest, NetworkThere, network_key
from teraflock.instance.driver import Machine, Network
from teraflock.instance.engine_errors import EngineMissing, EngineRefused


class SimulatedNetworks(Calls):
    def prepare(self, machine: Machine) -> None:
        with self._changing("prepare", machine.handle) as call:
            self._known(machine.handle.host)
            for nic in machine.nics:
                self._add(call, nic.network, machine.handle.host)

    def _add(self, call: SimulatedCall, network: Network, host: str) -> None:
        there = call.turn.get(NetworkThere, network_key(self._mark, network, host))
        if there is not None and there.network.subnet != network.subnet:
            raise EngineRefused("The simulated host has this network with other addresses")
        if there is None or not there.whole:
            call.turn.put(NetworkThere(network=network, host=host, mark=self._mark, whole=not call.half))

    def retire(self, network: Network) -> None:
        with self._changing("retire") as call:
            for there in call.turn.every(NetworkThere):
                if (there.mark, there.network.key) == (self._mark, network.key):
                    self._nobody_in(call, there)
                    call.turn.remove(NetworkThere, there.key)

    def _nobody_in(self, call: SimulatedCall, there: NetworkThere) -> None:
        guests = (as_of(each, call.now) for each in call.turn.on_host(Guest, there.host))
        if any(
            each.mark == self._mark and there.network.key in {nic.network.key for nic in each.machine.nics}
            for each in guests
            if each
        ):
            raise EngineRefused("The network still has simulated instances")

    def _known(self, host: str) -> None:
        """Check that a named host exists. If the engine chooses the host, none is named."""
        if host not in self._hosts and (host or self._hosts):
            raise EngineMissing("The simulated engine has no such host")
