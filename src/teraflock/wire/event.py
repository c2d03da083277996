"""Events on the wire, in pages and as a stream."""

from collections.abc import Mapping
from datetime import datetime

import msgspec


class EventAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    at: datetime
    kind: str
    subject: str
    details: Mapping[str, str | int | float | bool | None]


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[EventAnswer, ...]
    next: str | None
