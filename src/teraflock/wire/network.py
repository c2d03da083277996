"""Networks, their peerings, and answers about connections, on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec

from teraflock.wire.field import Name
from teraflock.wire.security_group import RuleAnswer
from teraflock.wire.subnet import SubnetAnswer
from teraflock.wire.word import closed


class NetworkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name


class NetworkInstance(msgspec.Struct, frozen=True, kw_only=True):
    instance: str
    """The name of the instance."""
    address: str
    ipv6_address: str = ""
    """It follows from `address`."""


class PeeringAnswer(msgspec.Struct, frozen=True, kw_only=True):
    project_id: str
    """The id of the other project."""
    project: str
    """Its name. Empty until its owner has agreed."""
    network: str
    """The name of the other network."""
    cidr: str
    """Its addresses. Empty unless the peering is active."""
    state: Annotated[str, closed("requested", "offered", "active")]
    """`requested`: the other side has not agreed yet. `offered`: this side has not. `active`: both have."""
    since: datetime


class NetworkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    cidr: str
    ipv6_cidr: str = ""
    """Its IPv6 addresses. They reach the networks of projects only."""
    gateway: str
    subnets: tuple[SubnetAnswer, ...]
    instances: tuple[NetworkInstance, ...]
    peerings: tuple[PeeringAnswer, ...]
    created_at: datetime


class NetworkList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[NetworkAnswer, ...]


class DecidingRule(msgspec.Struct, frozen=True, kw_only=True):
    security_group: str
    rule: RuleAnswer


class NetworkCheckAnswer(msgspec.Struct, frozen=True, kw_only=True):
    passes: bool
    sentence: str
    hint: str
    """What would let it pass. Empty if it passes."""
    leaving: DecidingRule | None
    """The rule that lets it out of the source. Null: none does, or the source is not an instance."""
    entering: DecidingRule | None
    """The rule that lets it into the target. Null: none does, or the target is not an instance."""


class ConnectionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    target: str
    allows: str
    """Such as `tcp 22, 80-90; icmp`, or `everything`. What passes with IPv6 only comes after `IPv6:`."""


class NetworkGraphAnswer(msgspec.Struct, frozen=True, kw_only=True):
    ends: tuple[str, ...]
    """`internet`, and the names of the instances."""
    connections: tuple[ConnectionAnswer, ...]
