"""Queued launches as text."""

from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.words.shape import cards_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text, time_text

if TYPE_CHECKING:
    from teraflock.wire.queue import QueuedAnswer


def fields(now: datetime) -> "Fields[QueuedAnswer]":
    return (
        Field("ID", lambda each: each.id, worth=8),
        Field("NAME", lambda each: each.name, flexible=True),
        Field("STATE", lambda each: each.state),
        Field("PLACE", place_text, right=True),
        Field("EXPECTED START", lambda each: expected_text(each, now)),
        Field("INSTANCES", lambda each: str(each.instances), right=True, worth=5),
        Field("GPUS EACH", lambda each: cards_text(each.shape), worth=6),
        Field("PRIORITY", lambda each: str(each.priority), right=True, worth=2),
        Field("WAITS", lambda each: age_text(each.created_at, each.ended_at or now), right=True, worth=4),
        Field("REASON", lambda each: each.reason, flexible=True, worth=3),
    )


def place_text(queued: "QueuedAnswer") -> str:
    return f"{queued.place} of {queued.waiting}" if queued.place else ""


def expected_text(queued: "QueuedAnswer", now: datetime) -> str:
    """A time in UTC, `now`, or `unknown`: running instances without a time limit end nobody knows when."""
    if queued.state != "waiting":
        return ""
    if queued.expected_at is None:
        return "unknown"
    return "now" if queued.expected_at <= now else f"by {time_text(queued.expected_at)[:-3]} UTC"
