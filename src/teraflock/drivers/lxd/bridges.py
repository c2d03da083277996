"""The bridges of networks on this host, and the DNS server of each.

A single engine has them as its own networks. The networks of a cluster belong to all its members, and none can be
created or changed while a member is away. So on a member of a cluster the bridges are ours: see `member_bridges.py`.
"""

import contextlib
from ipaddress import IPv4Network
from typing import Protocol

from teraflock.drivers.lxd import names
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.firewall import Bridge
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.setup import check_ours
from teraflock.instance.driver import Network


class Bridges(Protocol):
    """`dns` are the settings of a bridge's DNS server, and `mtu` is its largest packet. 0: no limit."""

    def all(self) -> tuple[Bridge, ...]: ...

    def ensure(self, bridge: Bridge, network: Network, *, dns: str, mtu: int) -> bool:
        """Create a bridge, unless it exists. Return whether it was created."""
        ...

    def limit(self, name: str, mtu: int) -> None: ...

    def remove(self, name: str) -> None: ...

    def are_up(self) -> bool:
        """Check whether nothing is missing that `keep` would create."""
        ...

    def keep(self) -> None:
        """Create again what a reboot removed."""
        ...


class EngineBridges:
    """Bridges that the engine manages. They are in its `default` project and have our tag."""

    def __init__(self, engine: LxdClient, ours: Names, *, way_out: bool) -> None:
        self._engine = engine
        self._ours = ours
        self._way_out = way_out

    def all(self) -> tuple[Bridge, ...]:
        return tuple(
            Bridge(each["name"], each["config"]["ipv4.address"].partition("/")[0])
            for each in self._engine.get("networks", recursion=1)
            if each.get("managed") and each["config"].get(names.TAG) == self._ours.installation
        )

    def ensure(self, bridge: Bridge, network: Network, *, dns: str, mtu: int) -> bool:
        try:
            found = self._engine.get("networks", bridge.name)
        except EngineMissing:
            with contextlib.suppress(EngineTaken):  # another thread was faster
                self._engine.post("networks", body=self._body(bridge, network, dns, mtu))
            return True
        check_ours(found, self._ours, f"network `{bridge.name}`")
        if found["config"].get("raw.dnsmasq") != dns:  # created by an earlier version
            self._engine.patch("networks", bridge.name, body={"config": {"raw.dnsmasq": dns}})
        return False

    def limit(self, name: str, mtu: int) -> None:
        config = {"bridge.mtu": str(mtu)}
        if self._engine.get("networks", name)["config"].get("bridge.mtu") != config["bridge.mtu"]:
            self._engine.patch("networks", name, body={"config": config})

    def remove(self, name: str) -> None:
        with contextlib.suppress(EngineMissing):
            check_ours(self._engine.get("networks", name), self._ours, f"network `{name}`")
            self._engine.delete("networks", name)

    def are_up(self) -> bool:
        return True

    def keep(self) -> None:
        """The engine does it."""

    def _body(self, bridge: Bridge, network: Network, dns: str, mtu: int) -> dict[str, object]:
        length = IPv4Network(network.subnet).prefixlen
        return {
            "name": bridge.name,
            "type": "bridge",
            "description": "made by teraflock",
            "config": {
                "ipv4.address": f"{network.gateway}/{length}",
                "ipv4.dhcp": "false",  # addresses are fixed, and written into the guest before it starts
                "ipv4.nat": "true" if self._way_out else "false",
                "ipv6.address": "none",
                # Guests use the gateway for public names. Incus runs no DNS server on a bridge that manages
                # no names.
                "dns.mode": "managed" if self._engine.server() == "incus" else "none",
                "raw.dnsmasq": dns,
                names.TAG: self._ours.installation,
                **({"bridge.mtu": str(mtu)} if mtu else {}),
            },
        }
