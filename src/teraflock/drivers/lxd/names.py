"""How the things that an installation makes on a host are called. All pure.

Every name is made of the installation's id, so that two installations on one host never meet, and nobody
else's things can be taken for ours.
"""

import hashlib
import re
from ipaddress import IPv4Address
from typing import Final

TAG: Final = "user.teraflock"
"""The configuration key that all our things in the engine carry; its value is the installation's id."""

BRIDGE_PREFIX: Final = "tf"
PORT_PREFIX: Final = "tg"

_INSTALLATION = re.compile(r"[a-z0-9]{4,16}")
_DIGEST_CHARACTERS: Final = 8


class Names:
    """The names of one installation. Its id is 4 to 16 lower-case letters and digits."""

    def __init__(self, installation: str) -> None:
        if not _INSTALLATION.fullmatch(installation):
            raise ValueError(f"not an installation's id: {installation!r}")
        self.installation = installation
        self.project = f"tera-{installation}"
        self.pool = f"tera-{installation}"
        self.table = f"tera_{installation}"
        self.counting_table = f"tera_{installation}_sent"
        self.guard_table = f"tera_{installation}_guard"
        self.port_prefix = PORT_PREFIX + _digest(installation)[:4]
        """How the host's ends of all guests' links begin."""

    def bridge(self, network: str) -> str:
        """The bridge of a network. Linux allows 15 characters, so the id goes in as a digest."""
        return BRIDGE_PREFIX + _digest(self.installation, network)

    def port(self, address: str) -> str:
        """The host's end of the link to the guest with this address: 14 of the 15 characters that Linux allows."""
        return f"{self.port_prefix}{int(IPv4Address(address)):08x}"

    def alias(self, digest: str) -> str:
        """How the engine knows an image built from a recipe."""
        return f"tera-{digest[:16]}"


def guest(instance: str) -> str:
    """The engine's name for an instance: its id, in the letters a host name may have."""
    name = instance.replace("_", "-").lower()
    if not re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", name):
        raise ValueError(f"not an instance's id: {instance!r}")
    return name


def hardware_address(installation: str, address: str) -> str:
    """The same for the same network address, always; of the range that anyone may use (second bit of the first).

    A host remembers for half a minute which hardware has an address: an address that is given away again right after
    its last owner went would be looked for at that owner's, if it did not stay the same.
    """
    digits = hashlib.sha256(f"{installation}/{address}".encode()).hexdigest()[:10]
    return "02:" + ":".join(digits[place : place + 2] for place in range(0, 10, 2))


def machine_id(instance: str) -> str:
    """The guest's /etc/machine-id: given from outside, or systemd takes its first boot for an installation."""
    return hashlib.sha256(f"machine {instance}".encode()).hexdigest()[:32]


def _digest(*words: str) -> str:
    return hashlib.sha256("/".join(words).encode()).hexdigest()[:_DIGEST_CHARACTERS]
