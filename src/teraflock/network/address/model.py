"""Values of public addresses."""

from datetime import datetime
from typing import Final, NewType

import msgspec

from teraflock.tenant.model import ProjectId

AddressId = NewType("AddressId", str)
PREFIX: Final = "adr"


class PublicAddress(msgspec.Struct, frozen=True, kw_only=True):
    id: AddressId
    project_id: ProjectId
    address: str
    target_id: str = ""
    """An instance or a balancer. Empty: it leads nowhere."""
    created_by: str
    created_at: datetime


class AddressTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What an address can lead to."""

    id: str
    name: str
    kind: str
    """`instance` or `balancer`."""
    private: str | None
    """Its address in the project's network."""


class ShownAddress(msgspec.Struct, frozen=True, kw_only=True):
    """An address as a tenant sees it."""

    public: PublicAddress
    target: AddressTarget | None = None
    """None: it leads nowhere, or what it led to is gone."""
