"""Projects as text."""

from typing import TYPE_CHECKING, Final

from teraflock.words.table import Field, Fields
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.project import ProjectAnswer

FIELDS: "Final[Fields[ProjectAnswer]]" = (
    Field("PROJECT", lambda each: each.name),
    Field("NETWORK", lambda each: each.subnet, worth=7),
    Field("ID", lambda each: each.id, worth=5),
    Field("CREATED AT (UTC)", lambda each: time_text(each.created_at), worth=4),
)
