"""Events on the wire."""

from teraflock.base.events import Event
from teraflock.wire.event import EventAnswer


def event_answer(event: Event) -> EventAnswer:
    return EventAnswer(
        id=event.id, at=event.at, kind=event.kind, subject=event.subject, details=event.details
    )
