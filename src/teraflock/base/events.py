"""Events: a record of each change, written in the transaction that makes the change.

Upstream code never calls downstream code. It writes an event, and each consumer continues from its last position.
A `kind` is `noun.verb_in_the_past`, such as `offers.imported`.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import msgspec

from teraflock.base.clock import microseconds
from teraflock.base.ids import EventId, new_id

RandomBytes = Callable[[int], bytes]
Details = dict[str, str | int | float | bool | None]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    id: EventId
    at: datetime
    kind: str
    subject: str
    """The id or name of the thing that changed."""
    project: str = ""
    """The project whose members may see the event. If empty, only the operator sees it."""
    details: Details = {}


class Metered(Protocol):
    """A thing of a project that is charged, other than an instance."""

    @property
    def id(self) -> str: ...

    @property
    def project_id(self) -> str: ...

    @property
    def created_by(self) -> str: ...


def new_event(
    kind: str, subject: str, now: datetime, random_bytes: RandomBytes, details: Details, *, project: str = ""
) -> Event:
    id = EventId(new_id("evt", now, random_bytes))
    return Event(id=id, at=now, kind=kind, subject=subject, project=project, details=details)


def moved_event(
    noun: str, thing: Metered, now: datetime, random_bytes: RandomBytes, details: Details
) -> Event:
    """An event that the meter reads like that of an instance. `details` has at least `name`, `sequence` and `to`."""
    same: Details = {"generation": 0, "from": "", "labels": "{}", "member": thing.created_by}
    every = {**same, "asked_at_us": microseconds(now), **details}
    return new_event(f"{noun}.moved", thing.id, now, random_bytes, every, project=thing.project_id)
