"""Sessions of the console as text."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text, time_text

if TYPE_CHECKING:
    from teraflock.wire.console import ConsoleSessionAnswer


def fields(now: datetime, members: Mapping[str, str]) -> "Fields[ConsoleSessionAnswer]":
    """`members` maps ids to names."""
    return (
        Field("SESSION", lambda each: each.id),
        Field("MEMBER", lambda each: members.get(each.member_id, each.member_id), flexible=True, worth=8),
        Field("SIGNED IN", lambda each: f"{age_text(each.created_at, now)} ago", right=True, worth=7),
        Field("ENDS AT (UTC)", lambda each: time_text(each.expires_at), worth=5),
        Field("FROM", lambda each: each.address, worth=6),
        Field("BROWSER", lambda each: each.agent, flexible=True, worth=4),
    )
