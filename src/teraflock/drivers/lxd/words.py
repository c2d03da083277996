"""Checks values that go into text for `nft`, so that nothing else can get into the text."""

import re
from ipaddress import IPv4Network

_HARDWARE = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def quoted(interface: str) -> str:
    if not interface.isascii() or not interface.isalnum():
        raise ValueError(f"invalid interface name: {interface!r}")
    return f'"{interface}"'


def checked_hardware(address: str) -> str:
    if not _HARDWARE.fullmatch(address):
        raise ValueError(f"invalid hardware address: {address!r}")
    return address


def checked_network(text: str) -> str:
    return str(IPv4Network(text))
