"""Entries of the audit log on the wire."""

from collections.abc import Mapping
from datetime import datetime

import msgspec


class AuditAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    at: datetime
    member_id: str
    member: str = ""
    """The name of who did it: a member, `operator`, or `server` for what the server did by itself."""
    key_id: str
    project_id: str
    action: str
    subject: str
    details: Mapping[str, str | int | float | bool | None]


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[AuditAnswer, ...]
    next: str | None
