"""The table that stops guests from spoofing addresses, as text for `nft -f`. Pure.

It checks every frame that enters a bridge, by the name of its port: the sender's hardware address and IPv4
address must be those of the guest on that port, in ARP too. Everything else that a guest may send (IPv6,
router advertisements, VLAN tags, spanning tree …) is dropped, because guests have only IPv4. A port with our
prefix that is not in the set cannot send anything. Further interfaces of a guest reach private networks only: what
a guest sends to the internet leaves through its first interface, where it is counted.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address

import msgspec

from teraflock.drivers.lxd.words import checked_hardware, quoted
from teraflock.network.rules import RANGE


class Station(msgspec.Struct, frozen=True):
    """The port and addresses of a guest on its bridge."""

    port: str
    hardware: str
    address: str
    is_inner: bool = False
    """Not the guest's first interface."""


def table(name: str, port_prefix: str, stations: Iterable[Station]) -> str:
    """Return the whole table, which replaces the existing one."""
    known = tuple(stations)
    elements = ", ".join(map(_element, known))
    listed = f"elements = {{ {elements} }}" if elements else ""
    ports = ", ".join(quoted(each.port) for each in known if each.is_inner)
    inner = f"elements = {{ {ports} }}" if ports else ""
    return f"""table bridge {name}
delete table bridge {name}
table bridge {name} {{
  set stations {{
    type ifname . ether_addr . ipv4_addr
    {listed}
  }}
  set inner {{
    type ifname
    {inner}
  }}
  chain from_guest_arp {{
    iifname . arp saddr ether . arp saddr ip @stations accept
    drop
  }}
  chain from_guest {{
    ether type ip iifname @inner ip daddr != {RANGE} drop
    ether type ip iifname . ether saddr . ip saddr @stations accept
    ether type arp iifname . ether saddr . arp saddr ip @stations jump from_guest_arp
    drop
  }}
  chain entering {{
    type filter hook prerouting priority -300; policy accept;
    iifname "{quoted(port_prefix).strip('"')}*" jump from_guest
  }}
}}
"""


def admit(name: str, station: Station) -> str:
    port = f"add element bridge {name} inner {{ {quoted(station.port)} }}\n" if station.is_inner else ""
    return port + f"add element bridge {name} stations {{ {_element(station)} }}\n"


def dismiss(name: str, station: Station) -> str:
    port = f"delete element bridge {name} inner {{ {quoted(station.port)} }}\n" if station.is_inner else ""
    return f"delete element bridge {name} stations {{ {_element(station)} }}\n" + port


def remove(name: str) -> str:
    """Remove the table if it exists."""
    return f"table bridge {name}\ndelete table bridge {name}\n"


def _element(station: Station) -> str:
    """Format the element from checked values, so that nothing else can get into the text."""
    return f"{quoted(station.port)} . {checked_hardware(station.hardware)} . {IPv4Address(station.address)}"
