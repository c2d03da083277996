"""Rows of the audit log as the API has them."""

from collections.abc import Mapping
from datetime import datetime

import msgspec


class AuditAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    at: datetime
    member_id: str
    member: str = ""
    """Who did it, by name; `operator` where the operator did, `server` where nobody asked for it at that time."""
    key_id: str
    project_id: str
    action: str
    subject: str
    details: Mapping[str, str | int | float | bool | None]


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[AuditAnswer, ...]
    next: str | None
