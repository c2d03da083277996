"""Networks of a project, their peerings, and questions about connections."""

from teraflock.client.noun import Noun
from teraflock.wire.network import (
    NetworkAnswer,
    NetworkCheckAnswer,
    NetworkGraphAnswer,
    NetworkList,
    NetworkRequest,
    PeeringAnswer,
)


class Networks(Noun):
    def list(self, *, instances: bool = True) -> tuple[NetworkAnswer, ...]:
        """Without the instances, a large project answers faster."""
        more = {} if instances else {"instances": False}
        return self._get(NetworkList, "networks", **more).items

    def get(self, network: str) -> NetworkAnswer:
        return self._get(NetworkAnswer, "networks", network)

    def create(self, name: str, *, idempotency_key: str = "") -> NetworkAnswer:
        return self._create(
            NetworkAnswer, "networks", body=NetworkRequest(name=name), idempotency_key=idempotency_key
        )

    def delete(self, network: str) -> None:
        self._send("DELETE", "networks", network)

    def peer(self, network: str, peer_project: str, peer_network: str) -> PeeringAnswer:
        """Request a peering, or accept one."""
        return self._act("PUT", PeeringAnswer, "networks", network, "peerings", peer_project, peer_network)

    def unpeer(self, network: str, peer_project: str, peer_network: str) -> None:
        self._send("DELETE", "networks", network, "peerings", peer_project, peer_network)

    def check(
        self, source: str, target: str, *, protocol: str = "tcp", port: str = "", ipv6: bool = False
    ) -> NetworkCheckAnswer:
        asked = {"source": source, "target": target, "protocol": protocol, "port": port}
        return self._get(NetworkCheckAnswer, "network", "check", **asked, ipv6=ipv6)

    def graph(self) -> NetworkGraphAnswer:
        return self._get(NetworkGraphAnswer, "network", "graph")
