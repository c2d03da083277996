"""Values of published ports."""

from datetime import datetime
from typing import NewType

import msgspec

from teraflock.tenant.model import ProjectId

PublishedPortId = NewType("PublishedPortId", str)


class PublishedPort(msgspec.Struct, frozen=True, kw_only=True):
    id: PublishedPortId
    project_id: ProjectId
    instance_id: str
    host_id: str
    port: int
    """Of the host."""
    guest_port: int
    created_at: datetime


class ShownPort(msgspec.Struct, frozen=True, kw_only=True):
    """A published port as a tenant sees it."""

    published: PublishedPort
    instance: str
    """The instance's name."""
    host_address: str


class Publisher(msgspec.Struct, frozen=True, kw_only=True):
    """An instance whose ports are to be published."""

    id: str
    name: str
    host_id: str | None
    address: str | None
    """None: it has no address in the project's network."""
