"""Names for everything that an installation creates on a host. All pure.

Every name contains the installation's id or a digest of it, so that installations on one host never conflict
and no other object is mistaken for ours.
"""

import hashlib
import re
from ipaddress import IPv4Address
from typing import Final

from teraflock.base.limits import NAME

TAG: Final = "user.teraflock"
"""The configuration key of all our objects in the engine. Its value is the installation's id."""

BRIDGE_PREFIX: Final = "tf"
PROBE_PROJECT: Final = "prj_probe"
"""Owns the network of the temporary guest that probes the host. It has no security groups."""
PORT_PREFIX: Final = "tg"
LINK_PREFIX: Final = "tv"
WIRE_PREFIX: Final = "tw"

_INSTALLATION = re.compile(r"[a-z0-9]{4,16}")
_DIGEST_CHARACTERS: Final = 8


class Names:
    """The names of one installation. Its id is 4 to 16 lower-case letters and digits."""

    def __init__(self, installation: str, member: str = "") -> None:
        """`member` is the engine's name in its cluster. Empty: it is in none.

        Each member of a cluster has a project of its own: names of guests are unique in the projects of all members,
        and a guest that was lost with its host must be created elsewhere under the same name.
        """
        if not _INSTALLATION.fullmatch(installation):
            raise ValueError(f"invalid installation id: {installation!r}")
        self.installation = installation
        self.member = member
        self.project = f"tera-{installation}" + (f"-{_digest(member)}" if member else "")
        self.pool = f"tera-{installation}"
        self.table = f"tera_{installation}"
        self.counting_table = f"tera_{installation}_sent"
        self.guard_table = f"tera_{installation}_guard"
        self.walls_table = f"tera_{installation}_walls"
        self.flood_table = f"tera_{installation}_flood"
        self.port_prefix = PORT_PREFIX + _digest(installation)[:4]
        """Prefix of the host's ends of all guests' links."""
        self.address_label = f"lo:{_digest(installation)}"
        """Marks the public addresses that the host has for guests. Linux allows 15 characters."""
        self.links_table = f"tera_{installation}_links"
        self.link_prefix = LINK_PREFIX + _digest(installation)[:4]
        """Prefix of all devices that lead to other hosts."""
        self.wire = WIRE_PREFIX + _digest(installation)
        """The WireGuard device."""

    def bridge(self, network: str) -> str:
        """Return the name of a network's bridge. Linux allows 15 characters, so the name contains a digest of
        the id."""
        return BRIDGE_PREFIX + _digest(self.installation, network)

    def port(self, address: str) -> str:
        """Return the name of the host's end of the link to a guest: 14 of the 15 characters that Linux
        allows."""
        return f"{self.port_prefix}{int(IPv4Address(address)):08x}"

    def link(self, number: int) -> str:
        """Return the name of the device that leads to the same network on other hosts."""
        return f"{self.link_prefix}{number:08x}"

    def alias(self, digest: str) -> str:
        """Return the engine's alias for an image built from a recipe."""
        return f"tera-{digest[:16]}"


def guest(instance: str) -> str:
    """Return the engine's name for an instance: its id, reduced to the characters of a host name."""
    name = instance.replace("_", "-").lower()
    if not re.fullmatch(NAME, name):
        raise ValueError(f"invalid instance id: {instance!r}")
    return name


def hardware_address(installation: str, address: str) -> str:
    """Return the hardware address for a network address. It never changes, and is locally administered
    (second bit).

    A host caches the hardware of an address for half a minute. If it changed with the owner, packets to a
    reused address would go to the hardware of the previous owner.
    """
    digits = hashlib.sha256(f"{installation}/{address}".encode()).hexdigest()[:10]
    return "02:" + ":".join(digits[place : place + 2] for place in range(0, 10, 2))


def machine_id(instance: str) -> str:
    """Return the guest's /etc/machine-id. It is set from outside, because systemd otherwise treats the first
    boot as an installation."""
    return hashlib.sha256(f"machine {instance}".encode()).hexdigest()[:32]


def _digest(*words: str) -> str:
    return hashlib.sha256("/".join(words).encode()).hexdigest()[:_DIGEST_CHARACTERS]
