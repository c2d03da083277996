"""The calls of the driver that concern only the networks of its host."""

from collections.abc import Sequence

from teraflock.drivers.lxd.balancers import LxdBalancers
from teraflock.drivers.lxd.network import LxdNetworks
from teraflock.instance.driver import Network, Sent
from teraflock.network.balancer.model import BalancerSeen, BalancerSpec
from teraflock.network.fabric import Fabric, WireKey
from teraflock.network.naming import KnownName
from teraflock.network.walls import Walls


class NetworkCalls:
    networks: LxdNetworks
    balancing: LxdBalancers

    def allow_out(self, host: str, networks: tuple[str, ...]) -> None:
        self.networks.allow_out(networks)

    def enforce(self, walls: Walls) -> None:
        self.networks.enforce(walls)

    def balance(self, wanted: Sequence[BalancerSpec]) -> None:
        self.balancing.balance(wanted)

    def balancers(self) -> Sequence[BalancerSeen]:
        return self.balancing.balancers()

    def wire(self) -> WireKey:
        return self.networks.wire()

    def link(self, fabric: Fabric) -> None:
        self.networks.link(fabric)

    def know(self, names: Sequence[KnownName]) -> None:
        self.networks.know(names)

    def all_sent(self) -> Sequence[Sent]:
        return self.networks.sent()

    def retire(self, network: Network) -> None:
        self.networks.remove(network)
