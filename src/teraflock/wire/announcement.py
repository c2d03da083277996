"""Announcements on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Ref

Text = Annotated[str, Meta(min_length=1, max_length=1000, pattern=r"^[^\u0000-\u001f\u007f]+$(?!\n)")]


class AnnouncementRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Text
    organisation: Ref = ""
    """Id or name of the organisation it is for. Empty: for all organisations."""
    until: Annotated[datetime, Meta(tz=True)] | None = None
    """When it ends, with a time zone. Null: when it is removed."""


class AnnouncementAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    text: str
    organisation_id: str
    created_at: datetime
    until: datetime | None


class AnnouncementList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[AnnouncementAnswer, ...]
