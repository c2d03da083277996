"""Address arithmetic. Every network has its own part of one private range, the same on every host.

Part `n` is the n-th block of 4,096 addresses. Its first address is the gateway; the next few are reserved.
"""

from collections.abc import Container, Iterable
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from teraflock.base.errors import Refused

RANGE: Final = IPv4Network("10.128.0.0/9")
PREFIX: Final = 20
NETWORKS_MAX: Final = 1 << (PREFIX - RANGE.prefixlen)
NETWORKS_KEPT: Final = 64
"""The last networks, reserved for operators: tenants cannot lock the operator out."""
FIRST_GUEST: Final = 16
"""Lower addresses of a part are the gateway's or reserved."""

CLOSED: Final = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
)  # fmt: skip
"""Networks that guests do not need and a host must not expose: the operator's own networks, and a cloud's
credentials service."""

PORT_FIRST: Final = 20_000
PORT_LAST: Final = 29_999
"""Ports of a host that are forwarded to guests. Below the range that systems use for outgoing connections."""
PUBLISHED_FIRST: Final = 30_000
PUBLISHED_LAST: Final = 32_767
"""The same, for ports that tenants publish themselves."""


def subnet(number: int) -> IPv4Network:
    if not 0 <= number < NETWORKS_MAX:
        raise ValueError(f"no network has the number {number}")
    size = 1 << (32 - PREFIX)
    return IPv4Network((int(RANGE.network_address) + number * size, PREFIX))


def gateway(number: int) -> IPv4Address:
    return subnet(number)[1]


def number_of(address: str) -> int:
    """The number of the network that has an address. Only for addresses in `RANGE`."""
    return (int(IPv4Address(address)) - int(RANGE.network_address)) >> (32 - PREFIX)


def free_addresses(
    network: IPv4Network, taken: Container[str], count: int, without: Iterable[IPv4Network] = ()
) -> list[str]:
    """The lowest `count` free addresses of a network or a part of one, and of none of the parts in `without`."""
    found: list[str] = []
    whole = network.supernet(new_prefix=PREFIX)
    lowest, highest = int(whole.network_address) + FIRST_GUEST, int(whole.broadcast_address) - 1
    value, last = max(int(network.network_address), lowest), min(int(network.broadcast_address), highest)
    parts = sorted((int(each.network_address), int(each.broadcast_address)) for each in without)
    while value <= last and len(found) < count:
        if past := next((end + 1 for start, end in parts if start <= value <= end), 0):
            value = past
            continue
        if (text := _text(value)) not in taken:
            found.append(text)
        value += 1
    if len(found) < count:
        raise Refused(
            f"{network} has fewer than {count} free addresses",
            hint="Delete instances, or use another network: `tera network list`",
        )
    return found


def _text(value: int) -> str:
    """The address as text, several times as fast as `ipaddress`: a launch may pass thousands that are taken."""
    return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"


def is_reserved(address: str) -> bool:
    """Whether no instance can have an address of `RANGE`: the gateway and the first and last ones of each network."""
    place = (int(IPv4Address(address)) - int(RANGE.network_address)) % (1 << (32 - PREFIX))
    return place < FIRST_GUEST or place == (1 << (32 - PREFIX)) - 1


def free_ports(taken: Container[int], count: int) -> list[int]:
    """The lowest `count` free ports of a host."""
    found: list[int] = []
    for port in range(PORT_FIRST, PORT_LAST + 1):
        if len(found) == count:
            break
        if port not in taken:
            found.append(port)
    if len(found) < count:
        raise Refused(
            f"The host has fewer than {count} free ports", hint="Delete instances that you no longer need"
        )
    return found
