"""What differs between IPv4 and IPv6 in text for `nft`. All else is written once, for both.

Names of sets and maps have a suffix for IPv6. Addresses of guests come as IPv4 and are formatted from parsed values, so
that nothing else can get into the text.
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

import msgspec

from teraflock.network.ipv6 import LENGTH6, MASK6, four, six, six_network
from teraflock.network.rules import PREFIX

NEIGHBOURS: Final = "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert }"
"""Questions and answers about the hardware addresses of IPv6 addresses. The guard has checked them, as it does ARP."""


class AddressFamily(msgspec.Struct, frozen=True, kw_only=True):
    word: str
    kind: str
    """The type of an address."""
    icmp: str
    suffix: str
    length: int
    """Of the prefix that all networks have."""
    mask: str
    """Leads from an address to its network."""

    def address(self, text: str) -> str:
        """The address of this family that an interface has."""
        return six(four(text)) if self.suffix else _four(text)

    def network(self, text: str) -> str:
        """What a network in a rule means in this family. Empty: nothing."""
        if self.suffix:
            return six_network(text)
        found = ip_network(text)
        return str(found) if isinstance(found, IPv4Network) else ""

    def first(self, network: str) -> str:
        """The first address of one of our networks, given as IPv4. All have the same size, so this is enough."""
        if IPv4Network(network).prefixlen != PREFIX:
            raise ValueError(f"not a network: {network!r}")
        return self.network(network).partition("/")[0]


FOUR: Final = AddressFamily(
    word="ip",
    kind="ipv4_addr",
    icmp="icmp",
    suffix="",
    length=PREFIX,
    mask=str(IPv4Network((0, PREFIX)).netmask),
)
SIX: Final = AddressFamily(
    word="ip6", kind="ipv6_addr", icmp="ipv6-icmp", suffix="6", length=LENGTH6, mask=MASK6
)
FAMILIES: Final = (FOUR, SIX)


@lru_cache(maxsize=1 << 16)
def _four(text: str) -> str:
    return str(IPv4Address(four(text)))


def link_local(hardware: str) -> str:
    """The address that Linux gives an interface for questions about neighbours (RFC 4291, appendix A)."""
    own = bytes.fromhex(hardware.replace(":", ""))
    last = bytes((own[0] ^ 2, *own[1:3], 0xFF, 0xFE, *own[3:]))
    return str(IPv6Address(int(IPv6Network("fe80::/64").network_address) | int.from_bytes(last, "big")))
