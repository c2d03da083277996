"""API keys as text."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.words.table import Field, Fields
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.key import KeyAnswer


def fields(now: datetime, members: Mapping[str, str], projects: Mapping[str, str]) -> "Fields[KeyAnswer]":
    """`members` and `projects` map ids to names."""
    return (
        Field("KEY", lambda each: each.name, flexible=True),
        Field("STATE", lambda each: state_text(each, now)),
        Field("ID", lambda each: each.id),
        Field("MEMBER", lambda each: members.get(each.member_id, each.member_id), worth=4),
        Field("ONLY", lambda each: projects.get(each.project, each.project), worth=5),
        Field("MAX ROLE", lambda each: each.role_max or "", worth=5),
        Field("CREATED AT (UTC)", lambda each: time_text(each.created_at), worth=3),
    )


def state_text(key: "KeyAnswer", now: datetime) -> str:
    if key.revoked_at:
        return "revoked"
    if key.expires_at and key.expires_at <= now:
        return "expired"
    return f"until {key.expires_at:%Y-%m-%d}" if key.expires_at else "good"
