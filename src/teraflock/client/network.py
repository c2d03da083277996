"""Questions about a project's network."""

from teraflock.client.noun import Noun
from teraflock.wire.network import NetworkCheckAnswer, NetworkGraphAnswer


class Networks(Noun):
    def check(self, source: str, target: str, *, protocol: str = "tcp", port: str = "") -> NetworkCheckAnswer:
        return self._get(
            NetworkCheckAnswer, "network", "check", source=source, target=target, protocol=protocol, port=port
        )

    def graph(self) -> NetworkGraphAnswer:
        return self._get(NetworkGraphAnswer, "network", "graph")
