"""Lists and ends connections that the kernel tracks, through netlink.

The numbers are those of linux/netfilter/nfnetlink_conntrack.h. A connection is described as a guest's firewall sees it:
the target is the guest behind an open port, not the host.
"""

import socket
import struct
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Final

import msgspec

from teraflock.network.security_group.model import Protocol
from teraflock.network.walls import Packet

NETFILTER: Final = 12
LIST, DELETE = 0x101, 0x102
REQUEST, ACKNOWLEDGE, DUMP = 0x1, 0x4, 0x300
ERROR, DONE = 2, 3
ORIGINAL, REPLY, ID, ZONE = 1, 2, 12, 18
ADDRESSES, ENDS = 1, 2
SOURCE, TARGET = 1, 2
NUMBER, SOURCE_PORT = 1, 2
NO_SUCH_ENTRY: Final = 2
BUFFER_BYTES: Final = 1 << 18
SECONDS_MAX: Final = 10.0
_PROTOCOLS: Final = {6: Protocol.TCP, 17: Protocol.UDP, 1: Protocol.ICMP}

Attributes = dict[int, bytes]


class Flow(msgspec.Struct, frozen=True):
    packet: Packet
    """The first packet, as a guest's firewall sees it."""
    key: bytes
    """How the kernel finds it again."""


def flows() -> list[Flow]:
    """Return all tracked IPv4 connections."""
    with _opened() as link:
        _send(link, LIST, REQUEST | DUMP, b"")
        return [flow for content in _answers(link) if (flow := _flow(content)) is not None]


def end(found: list[Flow]) -> None:
    """End connections. Those that have ended already are ignored."""
    with _opened() as link:
        for flow in found:
            _send(link, DELETE, REQUEST | ACKNOWLEDGE, flow.key)
            for _ in _answers(link):
                pass


def _opened() -> socket.socket:
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER)
    link.bind((0, 0))
    link.settimeout(SECONDS_MAX)
    return link


def _send(link: socket.socket, kind: int, flags: int, attributes: bytes) -> None:
    family = struct.pack("=BBH", socket.AF_INET, 0, 0)
    length = 16 + len(family) + len(attributes)
    link.send(struct.pack("=IHHII", length, kind, flags, 1, 0) + family + attributes)


def _answers(link: socket.socket) -> Iterator[bytes]:
    """Yield the content of every message until the kernel says that it is done."""
    while True:
        data = link.recv(BUFFER_BYTES)
        at = 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind == DONE:
                return
            if kind == ERROR:
                code = -struct.unpack_from("=i", data, at + 16)[0]
                if code not in (0, NO_SUCH_ENTRY):
                    raise OSError(code, "the kernel rejected a request about connections")
                return
            yield data[at + 20 : at + length]
            at += (length + 3) & ~3


def _flow(content: bytes) -> Flow | None:
    parts = _attributes(content)
    if ORIGINAL not in parts or REPLY not in parts:
        return None
    source, _, number, _ = _tuple(parts[ORIGINAL])
    target, _, _, port = _tuple(parts[REPLY])
    key = b"".join(_attribute(kind, parts[kind]) for kind in (ORIGINAL, ID, ZONE) if kind in parts)
    protocol = _PROTOCOLS.get(number, Protocol.ANY)
    has_port = protocol in (Protocol.TCP, Protocol.UDP)
    return Flow(Packet(source, target, protocol, port if has_port else 0), key)


def _tuple(content: bytes) -> tuple[str, str, int, int]:
    """Return source, target, protocol and source port of one direction."""
    parts = _attributes(content)
    addresses, ends = _attributes(parts[ADDRESSES]), _attributes(parts[ENDS])
    source, target = (str(IPv4Address(addresses[each])) for each in (SOURCE, TARGET))
    port = int.from_bytes(ends.get(SOURCE_PORT, b""), "big")
    return source, target, ends[NUMBER][0], port


def _attributes(content: bytes) -> Attributes:
    found: Attributes = {}
    at = 0
    while at + 4 <= len(content):
        length, kind = struct.unpack_from("=HH", content, at)
        if length < 4:
            break
        found[kind & 0x3FFF] = content[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def _attribute(kind: int, content: bytes) -> bytes:
    nested = 0x8000 if kind in (ORIGINAL, REPLY) else 0
    length = 4 + len(content)
    return struct.pack("=HH", length, kind | nested) + content + bytes(-length % 4)
