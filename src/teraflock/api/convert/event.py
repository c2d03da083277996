"""Events on the wire."""

from teraflock.base.events import Event
from teraflock.base.filling import filled
from teraflock.wire.event import EventAnswer


def event_answer(event: Event) -> EventAnswer:
    return filled(EventAnswer, event)
