"""Subnets on the wire."""

from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Name, Ref


class SubnetRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    network: Ref = "default"
    cidr: Annotated[str, Meta(max_length=43)] = ""
    """Its addresses, such as `10.128.1.0/24`. They must be in the network and in no other subnet."""
    prefix: Annotated[int, Meta(ge=0, le=1000)] | None = None
    """Instead of `cidr`: its size, 21 to 29. The lowest free block of this size is used."""


class SubnetAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """Empty for the subnet `default`."""
    name: str
    network: str
    cidr: str
    """For `default`: the whole network. What other subnets have does not belong to it."""
    ipv6_cidr: str = ""
    """The IPv6 addresses of the same instances."""
    acl: str
    """The name of the ACL that guards it. Empty: none does."""
    instances: tuple[str, ...]
    """Names."""


class SubnetList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[SubnetAnswer, ...]
