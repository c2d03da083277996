"""The table that stops guests from speaking in another's name, as text for `nft -f`. Pure.

It looks at every frame where it enters the bridge, by the name of the port it came through: the sender's hardware
address and IPv4 address must be those of the guest behind that port, in ARP too. Everything else a guest may send
(IPv6, router advertisements, VLAN tags, spanning tree …) is dropped: guests are given IPv4 alone. A port that begins
like ours and is in no set gets nothing through.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address

import msgspec

from teraflock.drivers.lxd.words import checked_hardware, quoted


class Station(msgspec.Struct, frozen=True):
    """A guest as its bridge knows it."""

    port: str
    hardware: str
    address: str


def table(name: str, port_prefix: str, stations: Iterable[Station]) -> str:
    """The whole table, in place of the one that is there."""
    elements = ", ".join(map(_element, stations))
    listed = f"elements = {{ {elements} }}" if elements else ""
    return f"""table bridge {name}
delete table bridge {name}
table bridge {name} {{
  set stations {{
    type ifname . ether_addr . ipv4_addr
    {listed}
  }}
  chain from_guest_arp {{
    iifname . arp saddr ether . arp saddr ip @stations accept
    drop
  }}
  chain from_guest {{
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
    return f"add element bridge {name} stations {{ {_element(station)} }}\n"


def dismiss(name: str, station: Station) -> str:
    return f"delete element bridge {name} stations {{ {_element(station)} }}\n"


def remove(name: str) -> str:
    """Remove the table, there or not."""
    return f"table bridge {name}\ndelete table bridge {name}\n"


def _element(station: Station) -> str:
    """Made anew from checked values, so that no other word gets into the text."""
    return f"{quoted(station.port)} . {checked_hardware(station.hardware)} . {IPv4Address(station.address)}"
