"""Published ports on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Ref

PortNumber = Annotated[int, Meta(ge=0, le=1 << 31)]
"""The server says which numbers are possible."""


class PublishRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    instance: Annotated[Ref, Meta(min_length=1)]
    guest_port: PortNumber
    """The TCP port of the instance."""
    port: PortNumber | None = None
    """The port of the host, 30000 to 32767. Default: a free one."""


class PublishedPortAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    instance: str
    """The name of the instance."""
    guest_port: int
    address: str
    """The address of the host."""
    port: int
    """The port of the host."""
    created_at: datetime


class PublishedPortList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[PublishedPortAnswer, ...]
