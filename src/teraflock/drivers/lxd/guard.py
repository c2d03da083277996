"""The tables that stop guests from spoofing addresses, as text for `nft -f`. Pure.

It checks every frame that enters a bridge, by the name of its port: the sender's hardware address and its IPv4 or IPv6
address must be those of the guest on that port. A port with our prefix that is not in the sets cannot send anything.
Everything else that a guest may send (VLAN tags, spanning tree …) is dropped.

Who has an address is asked and answered by ARP and by neighbour discovery. Both are checked inside: a guest speaks only
for its own addresses, and names only its own hardware. For questions, Linux also uses an address that follows from the
hardware address (`fe80::…`), with which nothing else can be sent.

IPv6 goes only to addresses of our networks. So no guest is heard as a router, by a group of machines, or by the host
past its gateway. Headers between that of IPv6 and the content are dropped, because they hide what follows; only
fragments of TCP and UDP pass.

The same lookup limits how many packets a guest sends: each of its elements in a set has a limit. A new table forgets
what was counted, so the guest may send twice its limit once more.

Further interfaces of a guest reach private networks only: what a guest sends to the internet leaves through its first
interface, where it is counted.

A bridge does not forward frames to its own protocols (01:80:c2:00:00:0x), whatever they contain. The kernel hands them
to the host as if the port were an interface of its own, past the table above and past every rule about bridges. So two
more tables drop all that the host receives from a port and not from its bridge.
"""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Final

import msgspec

from teraflock.drivers.lxd.families import NEIGHBOURS, SIX, link_local
from teraflock.drivers.lxd.words import checked_hardware, quoted
from teraflock.network.ipv6 import RANGE6
from teraflock.network.rules import RANGE
from teraflock.network.walls import is_ours

FIRST, INNER, SPEAKERS = "stations", "inner", "speakers"
"""For IPv4: the sets of first interfaces and of further ones, and of all that may answer by ARP. Most packets are found
in the first. Their hardware address and the type of their frame are read at once, because each read costs time."""
SIXTH, ASKING, CLAIMS, OWNED = "stations6", "asking", "claims", "owned"
"""For IPv6: the addresses of guests; those that questions about neighbours come from; those that a guest may claim; and
the hardware addresses that it may name, as the option of a question or of an answer."""
_KINDS: Final = {
    **dict.fromkeys((FIRST, INNER), "typeof iifname . @ll,48,64 . ip saddr"),
    SPEAKERS: "type ifname . ether_addr . ether_addr . ipv4_addr",
    **dict.fromkeys((SIXTH, ASKING), "type ifname . ether_addr . ipv6_addr"),
    CLAIMS: "typeof iifname . ether saddr . @th,64,128",
    OWNED: "typeof iifname . @th,192,64",
}
TOLD: Final = (
    "echo-request, echo-reply, destination-unreachable, packet-too-big, time-exceeded, parameter-problem"
)
"""The ICMPv6 messages that guests may send."""
FRAGMENTS_PER_SECOND: Final = 2_000
"""Pieces of datagrams from one port; twice as many at once. The host keeps a piece for half a minute, in at least 1 KB
of memory that all guests share (`kernel.py`)."""
_FRAGMENT_LIMIT: Final = (
    f"limit rate over {FRAGMENTS_PER_SECOND}/second burst {2 * FRAGMENTS_PER_SECOND} packets"
)
LIMITED: Final = (FIRST, INNER, SPEAKERS, SIXTH, ASKING)
"""The sets whose elements limit the packets of their guest: an element over its limit ends its rule, so these sets are
never asked with `!=`."""
PORTS_MAX: Final = 65_536
PAST_BRIDGES: Final = {"inet": "input priority -300", "arp": "input priority 0"}
"""Where the host receives packets of each family that no bridge forwarded. It forwards none of these: their target is a
group of machines, not this one."""


class Station(msgspec.Struct, frozen=True):
    """The port and addresses of a guest on its bridge."""

    port: str
    hardware: str
    address: str
    is_inner: bool = False
    """Not the guest's first interface."""


def table(
    name: str, prefixes: Iterable[str], stations: Iterable[Station], packets_per_second: int = 0
) -> str:
    """Return the tables, which replace the existing ones. The first prefix is that of guests' ports.

    `packets_per_second`: from one interface, with IPv4, with IPv6, and about neighbours of each; twice as many at once.
    0: no limit."""
    guests, *others = (quoted(each).strip('"') for each in prefixes)
    elements: dict[str, list[str]] = {each: [] for each in _KINDS}
    for station in stations:
        for each, element in _elements(station):
            elements[each].append(element)
    sets = "".join(_set(each, listed, packets_per_second) for each, listed in elements.items())
    return f"""{remove(name)}table bridge {name} {{
{sets}  set fragments {{ type ifname; size {PORTS_MAX}; flags dynamic; timeout 60s; }}
  chain neighbours {{
    ip6 hoplimit != 255 drop
    icmpv6 type nd-neighbor-solicit ip6 length 32 iifname . @th,192,64 @{OWNED} accept
    ip6 daddr ff00::/8 drop
    iifname . ether saddr . @th,64,128 != @{CLAIMS} drop
    ip6 length 24 accept
    ip6 length 32 iifname . @th,192,64 @{OWNED} accept
    drop
  }}
  chain six {{
    ip6 daddr != {RANGE6} drop
    ip6 nexthdr {{ tcp, udp }} accept
    ip6 nexthdr icmpv6 icmpv6 type {{ {TOLD} }} accept
    ip6 nexthdr ipv6-frag frag nexthdr {{ tcp, udp }} accept
    drop
  }}
  chain from_guest_six {{
    ip6 nexthdr icmpv6 {NEIGHBOURS} iifname . ether saddr . ip6 saddr @{ASKING} goto neighbours
    ip6 nexthdr icmpv6 {NEIGHBOURS} drop
    iifname . ether saddr . ip6 saddr @{SIXTH} goto six
    drop
  }}
  chain from_guest {{
    ether type ip ip frag-off & 0x3fff != 0 update @fragments {{ iifname {_FRAGMENT_LIMIT} }} drop
    ether type ip6 ip6 nexthdr ipv6-frag update @fragments {{ iifname {_FRAGMENT_LIMIT} }} drop
    ip frag-off & 0x3fff != 0 iifname . @ll,48,64 . ip saddr @{FIRST} accept
    ip daddr {RANGE} iifname . @ll,48,64 . ip saddr @{INNER} accept
    ether type arp iifname . ether saddr . arp saddr ether . arp saddr ip @{SPEAKERS} accept
    ether type ip6 goto from_guest_six
    drop
  }}
  chain entering {{
    type filter hook prerouting priority -300; policy accept;
    iifname . @ll,48,64 . ip saddr @{FIRST} ip frag-off & 0x3fff == 0 accept
    iifname "{guests}*" jump from_guest
  }}
}}
""" + "".join(_past_bridges(name, family, (guests, *others)) for family in PAST_BRIDGES)


def _set(name: str, elements: Iterable[str], packets_per_second: int) -> str:
    joined, most = ", ".join(elements), int(packets_per_second)
    listed = f"\n    elements = {{ {joined} }}" if joined else ""
    limit = f"\n    limit rate {most}/second burst {2 * most} packets" if most and name in LIMITED else ""
    return f"""  set {name} {{
    {_KINDS[name]}{limit}{listed}
  }}
"""


def _past_bridges(name: str, family: str, prefixes: Iterable[str]) -> str:
    drops = "\n    ".join(f'iifname "{each}*" drop' for each in prefixes)
    return f"""table {family} {name} {{
  chain past_bridges {{
    type filter hook {PAST_BRIDGES[family]}; policy accept;
    {drops}
  }}
}}
"""


def admit(name: str, station: Station) -> str:
    return _changed("add", name, station)


def dismiss(name: str, station: Station) -> str:
    return _changed("delete", name, station)


def _changed(verb: str, name: str, station: Station) -> str:
    return "".join(
        f"{verb} element bridge {name} {each} {{ {element} }}\n" for each, element in _elements(station)
    )


def remove(name: str) -> str:
    """Remove the tables that exist."""
    families = ("bridge", *PAST_BRIDGES)
    return "".join(f"table {family} {name}\ndelete table {family} {name}\n" for family in families)


def _elements(station: Station) -> Iterator[tuple[str, str]]:
    """The sets that a guest's interface is in, with its elements, formatted from checked values, so that nothing else
    can get into the text."""
    port, hardware = quoted(station.port), checked_hardware(station.hardware)
    four = IPv4Address(station.address)
    yield INNER if station.is_inner else FIRST, f"{port} . 0x{hardware.replace(':', '')}0800 . {four}"
    yield SPEAKERS, f"{port} . {hardware} . {hardware} . {four}"  # of the frame, and of the message in it
    if not is_ours(station.address):  # the guest that probes the host has no IPv6
        return
    own = SIX.address(station.address)
    yield SIXTH, f"{port} . {hardware} . {own}"
    for each in (own, link_local(hardware)):
        yield ASKING, f"{port} . {hardware} . {each}"
        yield CLAIMS, f"{port} . {hardware} . {int(IPv6Address(each)):#034x}"
    for option in (1, 2):  # of a question, of an answer; each is eight bytes long
        yield OWNED, f"{port} . 0x{option:02x}01{hardware.replace(':', '')}"
