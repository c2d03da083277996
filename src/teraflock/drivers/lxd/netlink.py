"""Asks the kernel's firewall through netlink. Starting `nft` for a single question costs more than the question."""

import socket
import struct
from collections.abc import Iterator
from typing import Final

NETFILTER: Final = 12
REQUEST, ACKNOWLEDGE, DUMP = 0x1, 0x4, 0x300
ERROR, DONE = 2, 3
NO_SUCH_ENTRY: Final = 2
NESTED: Final = 0x8000
INET: Final = 1
CHAIN, CHAIN_TABLE, CHAIN_NAME = 0xA04, 1, 3
BUFFER_BYTES: Final = 1 << 18
SECONDS_MAX: Final = 10.0


def opened() -> socket.socket:
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER)
    link.bind((0, 0))
    link.settimeout(SECONDS_MAX)
    return link


def send(link: socket.socket, kind: int, flags: int, family: int, attributes: bytes = b"") -> None:
    head = struct.pack("=BBH", family, 0, 0)
    length = 16 + len(head) + len(attributes)
    link.send(struct.pack("=IHHII", length, kind, flags, 1, 0) + head + attributes)


def answers(link: socket.socket) -> Iterator[bytes]:
    """Yield the content of every message until the kernel says that it is done. What does not exist yields nothing."""
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
                    raise OSError(code, "the kernel rejected a request about its firewall")
                return
            yield data[at + 20 : at + length]
            at += (length + 3) & ~3


def attributes(content: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(content):
        length, kind = struct.unpack_from("=HH", content, at)
        if length < 4:
            break
        found[kind & 0x3FFF] = content[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def attribute(kind: int, content: bytes) -> bytes:
    length = 4 + len(content)
    return struct.pack("=HH", length, kind) + content + bytes(-length % 4)


def has_chain(table: str, chain: str) -> bool:
    """Check whether an `inet` table has a chain."""
    names = attribute(CHAIN_TABLE, table.encode() + b"\0") + attribute(CHAIN_NAME, chain.encode() + b"\0")
    with opened() as link:
        send(link, CHAIN, REQUEST | ACKNOWLEDGE, INET, names)
        return any(True for _ in answers(link))
