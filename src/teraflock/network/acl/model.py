"""Values of network ACLs."""

from datetime import datetime
from enum import StrEnum
from typing import NewType

import msgspec

from teraflock.base.limits import PORT_MAX
from teraflock.network.security_group.model import Direction, Protocol
from teraflock.tenant.model import ProjectId

AclId = NewType("AclId", str)


class AclAction(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


class AclRule(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Decides about single packets, replies included: an ACL has no memory."""

    direction: Direction
    number: int
    """Of the rules that match a packet, the one with the lowest number decides."""
    action: AclAction
    protocol: Protocol
    port_first: int = 0
    port_last: int = PORT_MAX
    """The port that the packet goes to."""
    peer: str
    """The network outside: where a packet comes from (`in`), or where it goes (`out`)."""


class Acl(msgspec.Struct, frozen=True, kw_only=True):
    id: AclId
    project_id: ProjectId
    name: str
    created_at: datetime
    rules: tuple[AclRule, ...] = ()
    """Sorted."""
    subnets: tuple[str, ...] = ()
    """The subnets that it guards, sorted, as `NETWORK/SUBNET`. A subnet has at most one ACL."""
