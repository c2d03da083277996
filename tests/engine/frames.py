"""Frames as a hostile guest writes them, byte by byte."""

import socket
import struct

BROADCAST = "ff:ff:ff:ff:ff:ff"
MARK = b"tera-forged"
"""In the content of every frame, so that it is recognised wherever it arrives."""


def hardware(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def ethernet(target: str, source: str, kind: int, content: bytes) -> bytes:
    return hardware(target) + hardware(source) + struct.pack("!H", kind) + content


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(
    source: str,
    target: str,
    content: bytes,
    *,
    protocol: int = 17,
    options: bytes = b"",
    identity: int = 1,
    fragment: int = 0,
) -> bytes:
    """`fragment`: the flag for more fragments (0x2000), and the offset in units of eight bytes."""
    size = 20 + len(options)
    first = (
        0x40 | size // 4, 0, size + len(content), identity, fragment, 64, protocol, 0, socket.inet_aton(source),
        socket.inet_aton(target),
    )  # fmt: skip
    head = struct.pack("!BBHHHBBH4s4s", *first) + options
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + content


def udp(port: int, data: bytes = MARK, source_port: int = 4444) -> bytes:
    return struct.pack("!HHHH", source_port, port, 8 + len(data), 0) + data


def arp(source: str, source_address: str, target_address: str, *, operation: int = 2) -> bytes:
    ends = hardware(source) + socket.inet_aton(source_address)
    ends += hardware(BROADCAST) + socket.inet_aton(target_address)
    return struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + ends + MARK


def ipv6(source: str, target: str, content: bytes, *, protocol: int = 17, hops: int = 255) -> bytes:
    """TCP, UDP and ICMP without extension headers get their checksum."""
    ends = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, target)
    at = {6: 16, 17: 6, 58: 2}.get(protocol)
    if at is not None and len(content) > at + 2:
        bare = content[:at] + b"\0\0" + content[at + 2 :]
        total = checksum(ends + struct.pack("!IHBB", len(bare), 0, 0, protocol) + bare)
        content = bare[:at] + struct.pack("!H", total) + bare[at + 2 :]
    return struct.pack("!IHBB", 6 << 28, len(content), protocol, hops) + ends + content


def neighbour(kind: int, address: str, option: int = 0, owner: str = "") -> bytes:
    """A question (135) or an answer (136) about an IPv6 address, with a hardware address as an option."""
    flags = 0x60000000 if kind == 136 else 0
    content = struct.pack("!BBHI", kind, 0, 0, flags) + socket.inet_pton(socket.AF_INET6, address)
    return content + (bytes([option, 1]) + hardware(owner) if owner else b"")


def tagged(content: bytes, *tags: tuple[int, int], kind: int = 0x0800) -> tuple[int, bytes]:
    """The kind and the content of a frame with VLAN tags: pairs of protocol and number."""
    for protocol, number in reversed(tags):
        kind, content = protocol, struct.pack("!HH", number, kind) + content
    return kind, content
