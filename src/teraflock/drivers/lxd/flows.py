"""Lists and ends connections that the kernel tracks, through netlink.

The numbers are those of linux/netfilter/nfnetlink_conntrack.h. A connection is described as a guest's firewall sees it:
the target is the guest behind an open port, not the host.
"""

import socket
from ipaddress import ip_address
from typing import Final

import msgspec

from teraflock.drivers.lxd.netlink import (
    ACKNOWLEDGE,
    DUMP,
    NESTED,
    REQUEST,
    answers,
    attribute,
    attributes,
    opened,
    send,
)
from teraflock.network.ipv6 import is_six
from teraflock.network.security_group.model import Protocol
from teraflock.network.walls import Packet

LIST, DELETE = 0x101, 0x102
ORIGINAL, REPLY, ID, ZONE = 1, 2, 12, 18
ADDRESSES, ENDS = 1, 2
SOURCE, TARGET = 1, 2
SOURCE6, TARGET6 = 3, 4
NUMBER, SOURCE_PORT, TARGET_PORT = 1, 2, 3
_PROTOCOLS: Final = {6: Protocol.TCP, 17: Protocol.UDP, 1: Protocol.ICMP, 58: Protocol.ICMP}


class Flow(msgspec.Struct, frozen=True):
    packet: Packet
    """The first packet, as a guest's firewall sees it."""
    key: bytes
    """How the kernel finds it again."""
    through: int = 0
    """The port of the host that led to the target; 0: none did."""
    asked: str = ""
    """The address that the first packet was sent to, if another one led from there to the target."""
    outer: str = ""
    """The address that the target sees, if it is not that of the source."""


def flows() -> list[Flow]:
    """Return all tracked connections."""
    found = []
    with opened() as link:
        for family in (socket.AF_INET, socket.AF_INET6):
            send(link, LIST, REQUEST | DUMP, family)
            found += [flow for content in answers(link) if (flow := _flow(content)) is not None]
    return found


def end(found: list[Flow]) -> None:
    """End connections. Those that have ended already are ignored."""
    with opened() as link:
        for flow in found:
            family = socket.AF_INET6 if is_six(flow.packet.source) else socket.AF_INET
            send(link, DELETE, REQUEST | ACKNOWLEDGE, family, flow.key)
            for _ in answers(link):
                pass


def _flow(content: bytes) -> Flow | None:
    parts = attributes(content)
    if ORIGINAL not in parts or REPLY not in parts:
        return None
    source, asked, number, asked_port = _tuple(parts[ORIGINAL], TARGET_PORT)
    target, outer, _, port = _tuple(parts[REPLY], SOURCE_PORT)
    key = b"".join(
        attribute(kind | (NESTED if kind == ORIGINAL else 0), parts[kind])
        for kind in (ORIGINAL, ID, ZONE)
        if kind in parts
    )
    protocol = _PROTOCOLS.get(number, Protocol.ANY)
    has_port = protocol in (Protocol.TCP, Protocol.UDP)
    through = asked_port if has_port and asked != target else 0
    return Flow(
        Packet(source, target, protocol, port if has_port else 0),
        key,
        through,
        asked if asked != target else "",
        outer if outer != source else "",
    )


def _tuple(content: bytes, side: int) -> tuple[str, str, int, int]:
    """Return source, target, protocol and one of the ports of one direction."""
    parts = attributes(content)
    addresses, kind = attributes(parts[ADDRESSES]), attributes(parts[ENDS])
    ends = (SOURCE, TARGET) if SOURCE in addresses else (SOURCE6, TARGET6)
    source, target = (str(ip_address(addresses[each])) for each in ends)
    port = int.from_bytes(kind.get(side, b""), "big")
    return source, target, kind[NUMBER][0], port
