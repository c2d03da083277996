"""Snapshots as text."""

from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.base.quantities import bytes_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text, time_text

if TYPE_CHECKING:
    from teraflock.wire.snapshot import SnapshotAnswer


def fields(now: datetime) -> "Fields[SnapshotAnswer]":
    return (
        Field("SNAPSHOT", lambda each: each.name),
        Field("STATE", lambda each: each.state),
        Field("KEEPS", lambda each: bytes_text(each.size_bytes), right=True, worth=6),
        Field("CREATED AT (UTC)", lambda each: time_text(each.created_at), worth=5),
        Field("AGE", lambda each: age_text(each.created_at, now), right=True),
        Field("PROBLEM", lambda each: each.problem, flexible=True, worth=4),
    )
