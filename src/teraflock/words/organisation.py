"""Organisations as text."""

from typing import TYPE_CHECKING, Final

from teraflock.words.table import Field, Fields
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.organisation import OrganisationAnswer

FIELDS: "Final[Fields[OrganisationAnswer]]" = (
    Field("ORGANISATION", lambda each: each.name),
    Field("STATE", lambda each: each.state),
    Field("ID", lambda each: each.id, worth=6),
    Field("CREATED AT (UTC)", lambda each: time_text(each.created_at), worth=5),
    Field("REASON", lambda each: each.state_reason, flexible=True, worth=4),
)
