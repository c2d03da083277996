"""The tables that stop guests from spoofing addresses, as text for `nft -f`. Pure.

It checks every frame that enters a bridge, by the name of its port: the sender's hardware address and IPv4
address must be those of the guest on that port, in ARP too. Everything else that a guest may send (IPv6,
router advertisements, VLAN tags, spanning tree …) is dropped, because guests have only IPv4. A port with our
prefix that is not in the set cannot send anything. Further interfaces of a guest reach private networks only: what
a guest sends to the internet leaves through its first interface, where it is counted.

A bridge does not forward frames to its own protocols (01:80:c2:00:00:0x), whatever they contain. The kernel hands them
to the host as if the port were an interface of its own, past the table above and past every rule about bridges. So two
more tables drop all that the host receives from a port and not from its bridge.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address
from typing import Final

import msgspec

from teraflock.drivers.lxd.words import checked_hardware, quoted
from teraflock.network.rules import RANGE

FIRST, INNER = "stations", "inner"
"""The sets of first interfaces and of further ones. Most packets are found in the first."""
FRAGMENTS_PER_SECOND: Final = 2_000
"""Pieces of datagrams from one port; twice as many at once. The host keeps a piece for half a minute, in at least 1 KB
of memory that all guests share (`kernel.py`)."""
_FRAGMENT_LIMIT: Final = (
    f"limit rate over {FRAGMENTS_PER_SECOND}/second burst {2 * FRAGMENTS_PER_SECOND} packets"
)
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


def table(name: str, prefixes: Iterable[str], stations: Iterable[Station]) -> str:
    """Return the tables, which replace the existing ones. The first prefix is that of guests' ports."""
    guests, *others = (quoted(each).strip('"') for each in prefixes)
    known = tuple(stations)
    sets = "".join(_set(each, [one for one in known if _set_of(one) == each]) for each in (FIRST, INNER))
    return f"""{remove(name)}table bridge {name} {{
{sets}  chain from_guest_arp {{
    iifname . arp saddr ether . arp saddr ip @{FIRST} accept
    iifname . arp saddr ether . arp saddr ip @{INNER} accept
    drop
  }}
  set fragments {{ type ifname; size {PORTS_MAX}; flags dynamic; timeout 60s; }}
  chain from_guest {{
    ether type ip ip frag-off & 0x3fff != 0 update @fragments {{ iifname {_FRAGMENT_LIMIT} }} drop
    ether type ip iifname . ether saddr . ip saddr @{FIRST} accept
    ether type ip ip daddr {RANGE} iifname . ether saddr . ip saddr @{INNER} accept
    ether type arp iifname . ether saddr . arp saddr ip @{FIRST} goto from_guest_arp
    ether type arp iifname . ether saddr . arp saddr ip @{INNER} goto from_guest_arp
    drop
  }}
  chain entering {{
    type filter hook prerouting priority -300; policy accept;
    iifname "{guests}*" jump from_guest
  }}
}}
""" + "".join(_past_bridges(name, family, (guests, *others)) for family in PAST_BRIDGES)


def _set(name: str, stations: Iterable[Station]) -> str:
    elements = ", ".join(map(_element, stations))
    listed = f"\n    elements = {{ {elements} }}" if elements else ""
    return f"""  set {name} {{
    type ifname . ether_addr . ipv4_addr{listed}
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
    return f"add element bridge {name} {_set_of(station)} {{ {_element(station)} }}\n"


def dismiss(name: str, station: Station) -> str:
    return f"delete element bridge {name} {_set_of(station)} {{ {_element(station)} }}\n"


def _set_of(station: Station) -> str:
    return INNER if station.is_inner else FIRST


def remove(name: str) -> str:
    """Remove the tables that exist."""
    families = ("bridge", *PAST_BRIDGES)
    return "".join(f"table {family} {name}\ndelete table {family} {name}\n" for family in families)


def _element(station: Station) -> str:
    """Format the element from checked values, so that nothing else can get into the text."""
    return f"{quoted(station.port)} . {checked_hardware(station.hardware)} . {IPv4Address(station.address)}"
