"""Which addresses are whose. Every project has its own part of one private range, the same on every host.

Part `n` is the n-th block of 4,096 addresses; its first address is the gateway, the next few are left for the house.
"""

from collections.abc import Container
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from teraflock.base.errors import Refused

RANGE: Final = IPv4Network("10.128.0.0/9")
PREFIX: Final = 20
NETWORKS_MAX: Final = 1 << (PREFIX - RANGE.prefixlen)
FIRST_GUEST: Final = 16
"""Addresses below it in a part are the gateway's and the house's."""

PORT_FIRST: Final = 20_000
PORT_LAST: Final = 29_999
"""Ports of a host that lead to guests: below the range from which systems take ports for outgoing connections."""


def subnet(number: int) -> IPv4Network:
    if not 0 <= number < NETWORKS_MAX:
        raise Refused(
            f"All {NETWORKS_MAX} networks are taken", hint="Delete projects that are not used any more"
        )
    size = 1 << (32 - PREFIX)
    return IPv4Network((int(RANGE.network_address) + number * size, PREFIX))


def gateway(number: int) -> IPv4Address:
    return subnet(number)[1]


def free_addresses(number: int, taken: Container[str], count: int) -> list[str]:
    """The lowest `count` addresses of a part that nobody has."""
    found: list[str] = []
    network = subnet(number)
    first, last = int(network.network_address) + FIRST_GUEST, int(network.broadcast_address) - 1
    for value in range(first, last + 1):
        if len(found) == count:
            break
        if (text := str(IPv4Address(value))) not in taken:
            found.append(text)
    if len(found) < count:
        raise Refused(
            f"The project's network {network} has no {count} free addresses left",
            hint="Delete instances, or use another project",
        )
    return found


def free_ports(taken: Container[int], count: int) -> list[int]:
    """The lowest `count` ports of a host that lead nowhere yet."""
    found: list[int] = []
    for port in range(PORT_FIRST, PORT_LAST + 1):
        if len(found) == count:
            break
        if port not in taken:
            found.append(port)
    if len(found) < count:
        raise Refused(
            f"A host has no {count} free ports left", hint="Delete instances that are not used any more"
        )
    return found
