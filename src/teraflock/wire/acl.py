"""Network ACLs on the wire."""

from datetime import datetime
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from teraflock.wire.field import Name
from teraflock.wire.security_group import DirectionWord, Peer, Ports, ProtocolWord
from teraflock.wire.word import closed

ActionWord = Literal["allow", "deny"]


class AclRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name


class AclRuleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    direction: DirectionWord
    number: Annotated[int, Meta(ge=0, le=1 << 31)]
    """1 to 32766. Of the rules that match a packet, the one with the lowest number decides."""
    action: ActionWord
    protocol: ProtocolWord = "any"
    ports: Ports = ""
    peer: Peer


class AclRuleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    direction: Annotated[str, closed(*get_args(DirectionWord))]
    number: int
    action: Annotated[str, closed(*get_args(ActionWord))]
    protocol: Annotated[str, closed(*get_args(ProtocolWord))]
    ports: str
    """`80` or `80-90`. Empty: every port."""
    peer: str


class AclAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    attached: bool
    """Whether it guards a subnet."""
    subnets: tuple[str, ...] = ()
    """The subnets that it guards, as `NETWORK/SUBNET`."""
    created_at: datetime
    rules: tuple[AclRuleAnswer, ...]


class AclList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[AclAnswer, ...]
