"""Organisations on the wire."""

from datetime import datetime
from typing import Literal

import msgspec

from teraflock.wire.field import Name, Reason
from teraflock.wire.member import MemberName


class OrganisationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    owner: MemberName
    """The name of its first member. The response contains a key for this member."""


class OrganisationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    created_at: datetime
    state: str = "active"
    """`active`, `suspended`, `deleting` or `deleted`."""
    state_reason: str = ""
    state_since: datetime | None = None


class OrganisationMade(msgspec.Struct, frozen=True, kw_only=True):
    organisation: OrganisationAnswer
    owner_id: str
    key: str
    """Shown only once."""


class OrganisationPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[OrganisationAnswer, ...]
    next: str | None


class OrganisationStateChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    state: Literal["active", "suspended"]
    reason: Reason


class OrganisationRename(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    reason: Reason


class OrganisationDeletion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Query of a deletion. Not a body, because many clients cannot send one with DELETE."""

    reason: Reason
    force: bool = False
