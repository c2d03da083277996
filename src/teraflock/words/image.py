"""Images as text."""

from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.base.quantities import bytes_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text

if TYPE_CHECKING:
    from teraflock.wire.image import ImageAnswer


def fields(now: datetime) -> "Fields[ImageAnswer]":
    return (
        Field("IMAGE", lambda each: each.name),
        Field("STATE", lambda each: each.state),
        Field(
            "SIZE", lambda each: bytes_text(each.size_bytes) if each.size_bytes else "", right=True, worth=6
        ),
        Field("FROM", lambda each: each.recipe or "an instance", worth=5),
        Field("FOR", lambda each: "all" if each.shared else "this project", worth=4),
        Field("AGE", lambda each: age_text(each.created_at, now), right=True, worth=3),
        Field("PROBLEM", lambda each: each.problem, flexible=True, worth=8),
    )
