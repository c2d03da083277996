"""API keys on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Ref
from teraflock.wire.member import RoleWord


class KeyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[Ref, Meta(min_length=1)]
    member: Ref = ""
    """The member it is for. Empty: yourself. Only owners can create keys for others."""
    project: Ref = ""
    role_max: RoleWord | None = None
    days: Annotated[int, Meta(ge=1, le=3650)] | None = None
    """Days until it expires. Null: never."""


class KeyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    member_id: str
    project: str
    role_max: RoleWord | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class KeyMade(msgspec.Struct, frozen=True, kw_only=True):
    key: KeyAnswer
    secret: str
    """Shown only once."""


class KeyPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[KeyAnswer, ...]
    next: str | None
