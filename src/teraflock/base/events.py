"""Events: what happened, as a row written in the transaction that made it happen.

Upstream never calls downstream; it leaves an event, and whoever is concerned reads on from where it was.
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
    """What it happened to: the id or name of one thing."""
    project: str = ""
    """The project whose members may see it; empty: nobody's but the house's."""
    details: dict[str, str | int | float | bool | None] = {}
