"""Security groups on the wire."""

from datetime import datetime
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from teraflock.wire.field import Name
from teraflock.wire.word import closed

DirectionWord = Literal["in", "out"]
ProtocolWord = Literal["tcp", "udp", "icmp", "any"]
Ports = Annotated[
    str,
    Meta(
        max_length=20,
        pattern=r"^[^\u0000-\u001f\u007f]*$(?!\n)",
        description="`80` or `80-90`. Empty: every port.",
    ),
]
Peer = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        pattern=r"^[^\u0000-\u001f\u007f]*$(?!\n)",
        description="A network (`10.0.0.0/8`), an address, or `sg:NAME` for the members of a group.",
    ),
]


class SecurityGroupRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name


class RuleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    direction: DirectionWord
    protocol: ProtocolWord = "any"
    ports: Ports = ""
    peer: Peer


class RuleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    direction: Annotated[str, closed(*get_args(DirectionWord))]
    protocol: Annotated[str, closed(*get_args(ProtocolWord))]
    ports: str
    """`80` or `80-90`. Empty: every port."""
    peer: str
    """A network, or `sg:NAME`."""


class SecurityGroupAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    created_at: datetime
    rules: tuple[RuleAnswer, ...]
    instances: tuple[str, ...]
    """The names of its members: all, or as many as were asked for."""
    instance_count: int = 0
    """How many members it has."""


class SecurityGroupList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[SecurityGroupAnswer, ...]
