"""The projects' networks on the simulated hosts."""

from collections.abc import Container, Iterable, Sequence

from msgspec.structs import replace

from teraflock.drivers.simulated.calls import Calls, SimulatedCall
from teraflock.drivers.simulated.life import as_of
from teraflock.drivers.simulated.model import Guest, NetworkThere, SimulatedBalancer, network_key
from teraflock.instance.driver import Machine, Network
from teraflock.instance.engine_errors import EngineMissing, EngineRefused
from teraflock.network.balancer.model import BackendSeen, BackendState, BalancerSeen, BalancerSpec


class SimulatedNetworks(Calls):
    balanced: tuple[BalancerSpec, ...] = ()
    """What this process was asked for last, with certificates and keys. The world does not store those."""

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

    def balance(self, wanted: Sequence[BalancerSpec]) -> None:
        with self._changing("balance") as call:
            by_key = {f"{each.id}@{each.host}": each for each in wanted}
            there = {each.key: each for each in self._balancers(call) if each.running}
            for key in there.keys() - by_key.keys():
                call.turn.put(replace(there[key], running=False))
            for key, spec in () if call.half else by_key.items():
                if spec.host not in call.weather.away:
                    public = replace(spec, certificate="", key="")
                    fresh = SimulatedBalancer(spec=public, mark=self._mark, epoch=call.now.isoformat())
                    call.turn.put(replace(there.get(key, fresh), spec=public))
        self.balanced = tuple(wanted)

    def balancers(self) -> Sequence[BalancerSeen]:
        with self._asking("balancers") as call:
            found = [each.spec for each in self._balancers(call) if each.running]
            ids = {backend.instance_id for spec in found for backend in spec.backends}
            running = self._running(call, [call.turn.get(Guest, id) for id in ids])
            if not running >= ids:  # a second copy of an instance has a key of its own
                running = self._running(call, call.turn.every(Guest))
            return [seen_balancer(each, running) for each in found]

    def _running(self, call: SimulatedCall, found: Iterable[Guest | None]) -> set[str]:
        guests = [as_of(each, call.now) for each in found if each and each.mark == self._mark]
        return {each.machine.handle.instance_id for each in guests if each and each.running}

    def _balancers(self, call: SimulatedCall) -> list[SimulatedBalancer]:
        """All of ours on hosts that answer, and the counters of those that ended."""
        away = call.weather.away
        every = call.turn.every(SimulatedBalancer)
        return [each for each in every if each.mark == self._mark and each.host not in away]

    def _known(self, host: str) -> None:
        """Check that a named host exists. If the engine chooses the host, none is named."""
        if host not in self._hosts and (host or self._hosts):
            raise EngineMissing("The simulated engine has no such host")


def seen_balancer(spec: BalancerSpec, running: Container[str]) -> BalancerSeen:
    """Nothing passes through a simulated balancer: its sessions stay zero. A backend is up while it runs."""

    def seen(instance_id: str) -> BackendSeen:
        state = BackendState.UP if instance_id in running else BackendState.DOWN
        return BackendSeen(instance_id=instance_id, state=state)

    return BalancerSeen(id=spec.id, backends=tuple(seen(each.instance_id) for each in spec.backends))
