"""API keys as the API has them."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Ref
from teraflock.wire.member import RoleWord


class KeyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[Ref, Meta(min_length=1)]
    member: Ref = ""
    """Empty: for oneself. For others: owners only."""
    project: Ref = ""
    role_max: RoleWord | None = None
    days: Annotated[int, Meta(ge=1, le=3650)] | None = None
    """Until it expires; null: never."""


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
    """Shown this once."""


class KeyPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[KeyAnswer, ...]
    next: str | None
