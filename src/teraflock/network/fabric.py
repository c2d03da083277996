"""The networks of projects across hosts: what each host must know to reach the instances on other hosts. Pure.

A network is a bridge on each host that has instances in it. A VXLAN link joins the bridges. Every host knows at which
host each address is, so nothing is flooded, and a frame from another host is accepted only if it comes from an address
that is there.

Peered networks reach each other across hosts, too. A host with instances of one also has a bridge of the other. The
host of the sender routes a packet from the first bridge to the second, whose link brings it to the receiver. So each
host accepts on the link of a network packets from instances of that network and of those peered with it.

A link between two hosts is plain if both were added with a trusted wire. Otherwise WireGuard encrypts it, and two
hosts that cannot both do that have no link. The server's own machine goes by what its peers say.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Final, Protocol, runtime_checkable

import msgspec

INNER: Final = IPv4Network("198.18.0.0/15")
"""Addresses of hosts inside WireGuard. The range is reserved for benchmarks, so no real network has it."""
MTU_PLAIN: Final = 1450
MTU_ENCRYPTED: Final = 1370
"""What fits through a link on a wire with packets of 1,500 bytes: less 50 for VXLAN, and 80 for WireGuard."""


class WireKey(msgspec.Struct, frozen=True):
    """How a host encrypts."""

    key: str = ""
    """Its WireGuard public key. Empty: it cannot encrypt."""
    port: int = 0


class LinkHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host that can be linked with others."""

    site: str
    address: str
    number: int
    """Its place in `INNER`. 0: the server's own machine."""
    wire: WireKey
    trusted: bool
    """Its wire may be used unencrypted."""

    @property
    def inner(self) -> str:
        return str(INNER[self.number + 1])


class NetworkMember(msgspec.Struct, frozen=True, order=True):
    """An instance in a network."""

    site: str
    key: str
    """What engines know the network by."""
    network: int
    """The number of the network."""
    address: str


class Peer(msgspec.Struct, frozen=True, order=True):
    """Another host that is linked with this one."""

    address: str
    inner: str = ""
    """Its address inside WireGuard. Empty: the link is plain."""
    key: str = ""
    port: int = 0

    @property
    def target(self) -> str:
        """Where to send frames."""
        return self.inner or self.address


class RemoteStation(msgspec.Struct, frozen=True, order=True):
    """An instance on another host, and where to send frames for it."""

    key: str
    """What engines know the network by."""
    network: int
    address: str
    target: str


class PassedNetwork(msgspec.Struct, frozen=True, order=True):
    """A network that a host has no instances in, but needs a bridge of, because it is peered with one that it has."""

    key: str
    """What engines know the network by."""
    network: int
    project: str
    """The id of its project."""


class RoutedStation(msgspec.Struct, frozen=True, order=True):
    """An instance on another host whose packets arrive through the link of a network that it is not in."""

    key: str
    """What engines know that network by."""
    network: int
    address: str


class Fabric(msgspec.Struct, frozen=True, kw_only=True):
    """What one host needs to know about the others."""

    inner: str = ""
    """Its own address inside WireGuard. Empty: no link of it is encrypted."""
    mtu: int = 0
    """The largest packet in all networks. 0: no limit of ours."""
    peers: tuple[Peer, ...] = ()
    remotes: tuple[RemoteStation, ...] = ()
    """In the networks that this host has instances in, and in those peered with them."""
    passed: tuple[PassedNetwork, ...] = ()
    routed: tuple[RoutedStation, ...] = ()
    crossing: tuple[str, ...] = ()
    """Addresses of instances of this host whose packets may cross into peered networks on other hosts."""


@runtime_checkable
class FabricDriver(Protocol):
    """An engine that can link its networks with those of other hosts."""

    def wire(self) -> WireKey:
        """How this host encrypts. Creates its key if there is none."""
        ...

    def link(self, fabric: Fabric) -> None:
        """Make the links of this host exactly these. Returns soon if nothing changed."""
        ...


def fabrics(
    hosts: Sequence[LinkHost],
    members: Sequence[NetworkMember],
    peerings: Iterable[tuple[int, int]] = (),
    networks: Iterable[PassedNetwork] = (),
) -> dict[str, Fabric]:
    """What each host should link, by site. `peerings` has numbers of networks, `networks` all that are peered."""
    peers = {host.site: _peers(host, hosts) for host in hosts}
    any_encrypted = any(peer.inner for each in peers.values() for peer in each.values())
    mtu = (MTU_ENCRYPTED if any_encrypted else MTU_PLAIN) if any(peers.values()) else 0
    view = _Members(members, peerings, {each.network: each for each in networks})
    found = {}
    for host in hosts:
        linked = peers[host.site]
        found[host.site] = Fabric(
            inner=host.inner if any(peer.inner for peer in linked.values()) else "",
            mtu=mtu,
            peers=tuple(sorted(linked.values())),
            remotes=view.remotes(host.site, linked),
            passed=view.passed(host.site, linked),
            routed=view.routed(host.site, linked),
            crossing=view.crossing(host.site, linked),
        )
    return found


def can_be_peer(address: str) -> bool:
    """Whether other hosts can reach this address. Links use IPv4."""
    try:
        found = IPv4Address(address)
    except ValueError:
        return False
    return not (found.is_loopback or found.is_unspecified or found.is_multicast)


def unlinked(hosts: Sequence[LinkHost]) -> list[tuple[str, str]]:
    """Pairs of hosts that may not be linked, because one of them cannot encrypt."""
    return [
        (one.site, other.site)
        for place, one in enumerate(hosts)
        for other in hosts[place + 1 :]
        if _link(one, other) is None
    ]


def _peers(host: LinkHost, hosts: Sequence[LinkHost]) -> dict[str, Peer]:
    linked = {other.site: _link(host, other) for other in hosts if other.site != host.site}
    return {site: peer for site, peer in linked.items() if peer is not None}


def _link(host: LinkHost, other: LinkHost) -> Peer | None:
    """How `host` reaches `other`; None: not at all."""
    if (host.trusted or host.number == 0) and (other.trusted or other.number == 0):
        return Peer(address=str(IPv4Address(other.address)))
    if not (host.wire.key and other.wire.key):
        return None
    return Peer(other.address, other.inner, other.wire.key, other.wire.port)


class _Members:
    """Who is in which network, and which networks are peered."""

    def __init__(
        self,
        members: Sequence[NetworkMember],
        peerings: Iterable[tuple[int, int]],
        networks: Mapping[int, PassedNetwork],
    ) -> None:
        self._there = defaultdict[int, list[NetworkMember]](list)
        self._own = defaultdict[str, set[int]](set)
        for member in members:
            self._there[member.network].append(member)
            self._own[member.site].add(member.network)
        self._near = defaultdict[int, set[int]](set)
        for one, other in peerings:
            self._near[one].add(other)
            self._near[other].add(one)
        self._networks = networks

    def remotes(self, site: str, linked: Mapping[str, Peer]) -> tuple[RemoteStation, ...]:
        wanted = self._own[site] | {each.network for each in self.passed(site, linked)}
        found = (
            RemoteStation(each.key, each.network, each.address, linked[each.site].target)
            for network in wanted
            for each in self._there[network]
            if each.site in linked
        )
        return tuple(sorted(found))

    def passed(self, site: str, linked: Container[str]) -> tuple[PassedNetwork, ...]:
        """Peered networks with instances on other hosts, and none here."""
        near = {other for each in self._own[site] for other in self._near[each]} - self._own[site]
        return tuple(sorted(self._networks[each] for each in near if self._is_on(each, linked)))

    def routed(self, site: str, linked: Container[str]) -> tuple[RoutedStation, ...]:
        found = (
            RoutedStation(self._networks[network].key, network, each.address)
            for network in self._own[site]
            for other in self._near[network]
            for each in self._there[other]
            if each.site in linked
        )
        return tuple(sorted(found))

    def crossing(self, site: str, linked: Container[str]) -> tuple[str, ...]:
        found = (
            each.address
            for network in self._own[site]
            if any(self._is_on(other, linked) for other in self._near[network])
            for each in self._there[network]
            if each.site == site
        )
        return tuple(sorted(found))

    def _is_on(self, network: int, linked: Container[str]) -> bool:
        return any(each.site in linked for each in self._there[network])
