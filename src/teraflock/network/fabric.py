"""The networks of projects across hosts: what each host must know to reach the instances on other hosts. Pure.

A network is a bridge on each host that has instances in it. A VXLAN link joins the bridges. Every host knows at which
host each address is, so nothing is flooded, and a frame from another host is accepted only if it comes from an address
that is there.

A link between two hosts is plain if both were added with a trusted wire. Otherwise WireGuard encrypts it, and two
hosts that cannot both do that have no link. The server's own machine goes by what its peers say.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
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


class Fabric(msgspec.Struct, frozen=True, kw_only=True):
    """What one host needs to know about the others."""

    inner: str = ""
    """Its own address inside WireGuard. Empty: no link of it is encrypted."""
    mtu: int = 0
    """The largest packet in all networks. 0: no limit of ours."""
    peers: tuple[Peer, ...] = ()
    remotes: tuple[RemoteStation, ...] = ()
    """In the networks that this host has instances in."""


@runtime_checkable
class FabricDriver(Protocol):
    """An engine that can link its networks with those of other hosts."""

    def wire(self) -> WireKey:
        """How this host encrypts. Creates its key if there is none."""
        ...

    def link(self, fabric: Fabric) -> None:
        """Make the links of this host exactly these. Returns soon if nothing changed."""
        ...


def fabrics(hosts: Sequence[LinkHost], members: Sequence[NetworkMember]) -> dict[str, Fabric]:
    """What each host should link, by site."""
    peers = {host.site: _peers(host, hosts) for host in hosts}
    any_encrypted = any(peer.inner for each in peers.values() for peer in each.values())
    mtu = (MTU_ENCRYPTED if any_encrypted else MTU_PLAIN) if any(peers.values()) else 0
    found = {}
    for host in hosts:
        linked = peers[host.site]
        found[host.site] = Fabric(
            inner=host.inner if any(peer.inner for peer in linked.values()) else "",
            mtu=mtu,
            peers=tuple(sorted(linked.values())),
            remotes=_remotes(host.site, linked, members),
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


def _remotes(
    site: str, peers: Mapping[str, Peer], members: Sequence[NetworkMember]
) -> tuple[RemoteStation, ...]:
    there = defaultdict[int, list[NetworkMember]](list)
    for member in members:
        there[member.network].append(member)
    own = {member.network for member in members if member.site == site}
    found = (
        RemoteStation(each.key, each.network, each.address, peers[each.site].target)
        for network in own
        for each in there[network]
        if each.site in peers
    )
    return tuple(sorted(found))
