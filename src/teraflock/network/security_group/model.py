"""Values of security groups."""

from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final, NewType

import msgspec

from teraflock.base.limits import PORT_MAX
from teraflock.tenant.model import ProjectId

GroupId = NewType("GroupId", str)
PREFIX: Final = "sgr_"


class Direction(StrEnum):
    IN = "in"
    OUT = "out"


class Protocol(StrEnum):
    TCP = "tcp"
    UDP = "udp"
    ICMP = "icmp"
    ANY = "any"


class Rule(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Allows new connections. Replies always pass."""

    direction: Direction
    protocol: Protocol
    port_first: int = 0
    port_last: int = PORT_MAX
    """0 to 65535: every port. Only TCP and UDP have others."""
    peer: str
    """The other end: a network such as `10.0.0.0/8`, or the id of a group."""

    @property
    def id(self) -> str:
        """The same for the same rule, within one group."""
        words = (self.direction, self.protocol, str(self.port_first), str(self.port_last), self.peer)
        return f"rul_{sha256(' '.join(words).encode()).hexdigest()[:16]}"

    @property
    def names_group(self) -> bool:
        return self.peer.startswith(PREFIX)


class SecurityGroup(msgspec.Struct, frozen=True, kw_only=True):
    id: GroupId
    project_id: ProjectId
    name: str
    created_at: datetime
    rules: tuple[Rule, ...] = ()
    """Sorted."""


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """An instance of the project, with the ids of its groups."""

    instance_id: str
    name: str
    address: str | None
    """None: it runs on a rented machine, where groups are not enforced, or it is not placed yet."""
    site: str = ""
    groups: tuple[GroupId, ...] = ()
    more_addresses: tuple[str, ...] = ()
    """Of its further interfaces."""

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.address, *self.more_addresses) if self.address else ()
