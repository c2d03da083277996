"""Announcements as text."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from teraflock.words.table import Field, Fields
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.announcement import AnnouncementAnswer


def fields(organisations: Mapping[str, str]) -> "Fields[AnnouncementAnswer]":
    """`organisations` maps ids to names."""
    return (
        Field("ANNOUNCEMENT", lambda each: each.text, flexible=True),
        Field("FOR", lambda each: _audience(each.organisation_id, organisations)),
        Field("CREATED AT (UTC)", lambda each: time_text(each.created_at), worth=4),
        Field("UNTIL (UTC)", lambda each: time_text(each.until) if each.until else "", worth=5),
        Field("ID", lambda each: each.id),
    )


def _audience(organisation_id: str, names: Mapping[str, str]) -> str:
    """Whom an announcement is for. Tenants see neither names of organisations nor announcements for others."""
    if not organisation_id:
        return "all"
    return names.get(organisation_id, organisation_id) if names else "you"
