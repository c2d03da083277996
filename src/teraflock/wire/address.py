"""Public addresses on the wire."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from teraflock.wire.field import Ref


class AddressRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    address: Annotated[str, Meta(max_length=15, pattern=r"^[0-9.]*$(?!\n)")] = ""
    """A certain address of the pool. Default: a free one."""


class AddressTargetRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    target: Annotated[Ref, Meta(min_length=1)]
    """An instance or a balancer, by id or name."""


class AddressAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    address: str
    target: str
    """The name of the instance or balancer that it leads to. Empty: it leads nowhere."""
    target_kind: Literal["instance", "balancer", ""]
    private_address: str
    """The address of the target in the project's network."""
    created_at: datetime


class AddressList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[AddressAnswer, ...]
