"""The IPv6 addresses of networks. Each follows from an IPv4 address, so that nothing has to be stored or chosen twice.

A network has a /64 of one private range. Its last 32 bits are the IPv4 address:

    network 3     10.128.48.0/20      fd3e:9a51:c870:3::/64
    gateway       10.128.48.1         fd3e:9a51:c870:3::a80:3001
    an instance   10.128.48.16        fd3e:9a51:c870:3::a80:3010

Rules need no second copy for the same reason. An IPv4 network in a rule stands for instances, so it holds for both of
their addresses: what is denied with one cannot be had with the other. An IPv6 network in a rule holds for IPv6 only.
Other IPv6 addresses than these reach nothing and are not reached: IPv6 stays inside the networks of projects.
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

from teraflock.network.rules import PREFIX, RANGE, number_of

RANGE6: Final = IPv6Network("fd3e:9a51:c870::/48")
"""Private addresses (RFC 4193) with a random part."""
LENGTH6: Final = 64
MASK6: Final = str(IPv6Network((0, LENGTH6)).netmask)


def subnet6(number: int) -> IPv6Network:
    """The IPv6 addresses of a network."""
    return IPv6Network((int(RANGE6.network_address) | number << LENGTH6, LENGTH6))


@lru_cache(maxsize=65_536)
def six(address: str) -> str:
    """The IPv6 address that belongs to a private IPv4 address."""
    value = IPv4Address(address)
    if value not in RANGE:
        raise ValueError(f"not an address of a network: {address!r}")
    return str(IPv6Address(int(subnet6(number_of(address)).network_address) | int(value)))


@lru_cache(maxsize=65_536)
def four(address: str) -> str:
    """The IPv4 address of the same interface. Any other address is returned as it is."""
    if ":" not in address:
        return address
    value = IPv6Address(address)
    inner = IPv4Address(int(value) & 0xFFFFFFFF)
    return str(inner) if inner in RANGE and six(str(inner)) == str(value) else str(value)


def is_six(address: str) -> bool:
    return ":" in address


@lru_cache(maxsize=65_536)
def six_network(network: str) -> str:
    """The IPv6 addresses of the instances that have an address in this network. Empty: there can be none."""
    found = ip_network(network)
    if isinstance(found, IPv6Network):
        return str(found)
    if not found.overlaps(RANGE):
        return ""
    inside = found if found.prefixlen > RANGE.prefixlen else RANGE
    whole = subnet6(number_of(str(inside.network_address)))
    if inside.prefixlen <= PREFIX:  # several networks, whose numbers follow each other
        return str(whole.supernet(new_prefix=LENGTH6 - (PREFIX - inside.prefixlen)))
    first = int(whole.network_address) | int(inside.network_address)
    return str(IPv6Network((first, 96 + inside.prefixlen)))


def holds(network: str, address: str) -> bool:
    """Whether a network in a rule means an address."""
    kind, first, last = _span(network)
    value = _values(address)[kind]
    return value is not None and first <= value <= last


@lru_cache(maxsize=65_536)
def _values(address: str) -> tuple[int | None, int | None]:
    """An address as a number of IPv4 and of IPv6. None: it cannot be compared with networks of this kind."""
    inner = four(address)
    return (
        None if is_six(inner) else int(IPv4Address(inner)),
        int(IPv6Address(address)) if is_six(address) else None,
    )


@lru_cache(maxsize=65_536)
def _span(network: str) -> tuple[int, int, int]:
    """0 for IPv4 or 1 for IPv6, and the first and the last address as numbers."""
    found: IPv4Network | IPv6Network = ip_network(network)
    return int(found.version == 6), int(found.network_address), int(found.broadcast_address)
