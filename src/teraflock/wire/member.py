"""Members and their roles on the wire."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from teraflock.wire.field import Ref

RoleWord = Literal["owner", "member", "viewer", "billing"]
MemberName = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\s\u0000-\u001f]+$(?!\n)")]


class MemberRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: MemberName
    role: RoleWord
    project: Ref = ""
    """The project of the role. Empty: every project of the organisation."""


class RoleChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    role: RoleWord | None
    """Null removes the role."""
    project: Ref = ""


class MemberAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    is_operator: bool
    roles: Mapping[str, RoleWord]
    created_at: datetime


class MemberPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[MemberAnswer, ...]
    next: str | None
