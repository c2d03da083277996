"""Events: a record of each change, written in the transaction that makes the change.

Upstream code never calls downstream code. It writes an event, and each consumer continues from its last position.
A `kind` is `noun.verb_in_the_past`, such as `offers.imported`.
"""

from datetime import datetime

import msgspec

from teraflock.base.ids import EventId


class Event(msgspec.Struct, frozen=True, kw_only=True):
    id: EventId
    at: datetime
    kind: str
    subject: str
    """The id or name of the thing that changed."""
    project: str = ""
    """The project whose members may see the event. If empty, only the operator sees it."""
    details: dict[str, str | int | float | bool | None] = {}
