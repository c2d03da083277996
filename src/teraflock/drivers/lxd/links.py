"""What links the bridges of this host with those of other hosts, as text for `ip`, `bridge` and `nft`. Pure.

For each network with instances on other hosts, a VXLAN device is a port of its bridge. It learns nothing and floods
nothing: the bridge answers questions for remote instances itself (ARP and neighbour discovery), and each of their
hardware addresses has a fixed entry.

Two tables guard the links. The first accepts a frame from another host only if it is IPv4 or IPv6 and has the hardware
and network address of an instance that is there, in that network or in one peered with it. A packet that this host
routed into a peered network gets the hardware address of its sender back, so that the other host can check it. The
second accepts VXLAN packets only from linked hosts, those of encrypted links only through WireGuard, and sends them
only there. It forwards none to these hosts: what a guest sends has the address of its host when it arrives, so the
other host would take it for a frame of a link.
"""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Final

import msgspec

from teraflock.drivers.lxd.families import FAMILIES, NEIGHBOURS, AddressFamily
from teraflock.drivers.lxd.names import Names, hardware_address
from teraflock.drivers.lxd.words import checked_hardware, quoted
from teraflock.network.fabric import Fabric, RemoteStation

PORT: Final = 8734
"""UDP port of VXLAN on all hosts."""
NETWORK_MAX: Final = (1 << 24) - 1


class HostLink(msgspec.Struct, frozen=True, kw_only=True):
    """The device of one network, and what is behind it."""

    device: str
    bridge: str
    number: int
    mtu: int
    stations: Mapping[str, tuple[str, str]]
    """Hardware address and target of each remote address."""
    senders: Mapping[str, str]
    """Hardware address of each address whose packets are accepted: also of peered networks, which a host routed."""


def links(ours: Names, fabric: Fabric, bridges: Iterable[str]) -> tuple[HostLink, ...]:
    """The links of a host that has these bridges."""
    there, passed = set(bridges), {each.network for each in fabric.passed}
    stations: dict[tuple[str, int], dict[str, tuple[str, str]]] = {}
    senders: dict[tuple[str, int], dict[str, str]] = {}
    for remote in fabric.remotes:
        key = (ours.bridge(remote.key), remote.network)
        stations.setdefault(key, {})[remote.address] = _station(ours, remote)
        if (
            remote.network not in passed
        ):  # nobody here is in such a network, so nothing comes through its link
            senders.setdefault(key, {})[remote.address] = _station(ours, remote)[0]
    for routed in fabric.routed:
        key = (ours.bridge(routed.key), routed.network)
        senders.setdefault(key, {})[routed.address] = hardware_address(ours.installation, routed.address)
    return tuple(
        HostLink(
            device=ours.link(number),
            bridge=bridge,
            number=number,
            mtu=fabric.mtu,
            stations=stations.get((bridge, number), {}),
            senders=senders.get((bridge, number), {}),
        )
        for bridge, number in sorted({*stations, *senders})
        if bridge in there and 0 <= number <= NETWORK_MAX
    )


def _station(ours: Names, remote: RemoteStation) -> tuple[str, str]:
    return hardware_address(ours.installation, remote.address), str(IPv4Address(remote.target))


def device_commands(link: HostLink) -> list[str]:
    """Lines for `ip -batch` that create the device."""
    kind = f"type vxlan id {link.number} dstport {PORT} nolearning"
    return [
        f"link add {link.device} mtu {link.mtu} {kind}",
        f"link set {link.device} master {link.bridge}",
        f"link set {link.device} type bridge_slave learning off flood off mcast_flood off bcast_flood off"
        " neigh_suppress on",
        f"link set {link.device} up",
    ]


def station_commands(link: HostLink, before: Mapping[str, tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Lines for `ip -batch` and `bridge -batch` that bring the remote addresses from `before` to those of the link."""
    addresses, frames = [], []
    for address, (hardware, target) in before.items():
        if link.stations.get(address) != (hardware, target):
            addresses += [f"neighbour delete {each} dev {link.bridge}" for each in both(address)]
            frames.append(f"fdb delete {hardware} dev {link.device} dst {target} self")
            frames.append(f"fdb delete {hardware} dev {link.device} master")
    for address, (hardware, target) in link.stations.items():
        if before.get(address) != (hardware, target):
            known = f"lladdr {hardware} dev {link.bridge} nud permanent"
            addresses += [f"neighbour replace {each} {known}" for each in both(address)]
            frames.append(f"fdb replace {hardware} dev {link.device} dst {target} self static")
            frames.append(f"fdb replace {hardware} dev {link.device} master static")
    return addresses, frames


def both(address: str) -> tuple[str, ...]:
    """The addresses of an interface."""
    return tuple(family.address(address) for family in FAMILIES)


def tables(ours: Names, fabric: Fabric, found: Sequence[HostLink]) -> str:
    """Return both tables, which replace the existing ones in one transaction."""
    plain = ", ".join(str(IPv4Address(peer.address)) for peer in fabric.peers if not peer.inner)
    inner = ", ".join(str(IPv4Address(peer.inner)) for peer in fabric.peers if peer.inner)
    prefix = quoted(ours.link_prefix).strip('"')
    return f"""{removal(ours)}table bridge {ours.links_table} {{
{"".join(_checks(ours, fabric, found, family) for family in FAMILIES)}  chain from_host {{
    {NEIGHBOURS} drop
    ether type ip iifname . ether saddr . ip saddr @remotes accept
    ether type ip6 iifname . ether saddr . ip6 saddr @remotes6 accept
    drop
  }}
  chain entering {{
    type filter hook prerouting priority -300; policy accept;
    iifname "{prefix}*" jump from_host
  }}
  chain leaving {{
    type filter hook postrouting priority 300; policy accept;
    ether type ip oifname "{prefix}*" ether saddr set ip saddr map @crossing
    ether type ip6 oifname "{prefix}*" ether saddr set ip6 saddr map @crossing6
  }}
}}
table inet {ours.links_table} {{
  set plain {{
    type ipv4_addr
    {_listed(plain)}
  }}
  set inner {{
    type ipv4_addr
    {_listed(inner)}
  }}
  chain receive {{
    type filter hook input priority -10; policy accept;
    udp dport {PORT} iifname {quoted(ours.wire)} ip saddr @inner accept
    udp dport {PORT} iifname != {quoted(ours.wire)} ip saddr @plain accept
    udp dport {PORT} drop
  }}
  chain send {{
    type filter hook output priority -10; policy accept;
    udp dport {PORT} oifname {quoted(ours.wire)} ip daddr @inner accept
    udp dport {PORT} oifname != {quoted(ours.wire)} ip daddr @plain accept
    udp dport {PORT} drop
  }}
  chain forward {{
    type filter hook forward priority -10; policy accept;
    udp dport {PORT} ip daddr @inner drop
    udp dport {PORT} ip daddr @plain drop
  }}
}}
"""


def _checks(ours: Names, fabric: Fabric, found: Sequence[HostLink], family: AddressFamily) -> str:
    """Which frames are accepted from other hosts, and who sends packets that this host routes to them."""
    remotes = ", ".join(
        f"{quoted(link.device)} . {checked_hardware(hardware)} . {family.address(address)}"
        for link in found
        for address, hardware in link.senders.items()
    )
    crossing = ", ".join(
        f"{family.address(each)} : {checked_hardware(hardware_address(ours.installation, each))}"
        for each in fabric.crossing
    )
    return f"""  set remotes{family.suffix} {{
    type ifname . ether_addr . {family.kind}
    {_listed(remotes)}
  }}
  map crossing{family.suffix} {{
    type {family.kind} : ether_addr
    {_listed(crossing)}
  }}
"""


def removal(ours: Names) -> str:
    """Remove both tables if they exist."""
    return "".join(
        f"table {family} {ours.links_table}\ndelete table {family} {ours.links_table}\n"
        for family in ("bridge", "inet")
    )


def _listed(elements: str) -> str:
    return f"elements = {{ {elements} }}" if elements else ""
