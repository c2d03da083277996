"""Projects on the wire."""

from datetime import datetime

import msgspec

from teraflock.wire.field import Name
from teraflock.wire.quota import QuotaRequest, QuotaShape


class ProjectRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    quota: QuotaRequest = QuotaRequest()
    """A null limit gets the default for new projects (the setting `default_project_quota`)."""


class ProjectAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    organisation_id: str
    quota: QuotaShape
    subnet: str
    """Empty until the first instance is launched."""
    created_at: datetime


class ProjectPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ProjectAnswer, ...]
    next: str | None
