"""The event rows: written in the transaction that makes the change, read in the order of their ids.

Ids sort by creation time, not by commit time. An event can therefore appear before events that were committed
earlier, by as long as its transaction took. A reader that must not miss any goes back by that time on each turn,
and expects to read some events twice.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.base.events import Details, Event
from teraflock.base.ids import EventId
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import in_list

_COLUMNS: Final = "id, at_us, kind, subject, project_id, details"


def record_event(tx: Transaction, event: Event) -> None:
    tx.run(
        "INSERT INTO event (id, at_us, kind, subject, project_id, details)"
        " VALUES (:id, :at_us, :kind, :subject, :project, :details)",
        id=event.id,
        at_us=microseconds(event.at),
        kind=event.kind,
        subject=event.subject,
        project=event.project,
        details=msgspec.json.encode(event.details).decode(),
    )


def events_after(tx: Transaction, id: EventId | None, *, limit: int) -> tuple[Event, ...]:
    """The events whose ids come after `id`, oldest first. None: from the first event."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM event WHERE id > :id ORDER BY id LIMIT :limit", id=id or "", limit=limit
    )
    return tuple(_event_from(row) for row in rows)


def events_of_project(
    tx: Transaction, project: str, after: EventId | None, *, subject: str = "", limit: int
) -> tuple[Event, ...]:
    """The events of one project, or of one thing in it, whose ids come after `after`, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM event WHERE project_id = :project AND id > :after"
        " AND (:subject = '' OR subject = :subject) ORDER BY id LIMIT :limit",
        project=project,
        after=after or "",
        subject=subject,
        limit=limit,
    )
    return tuple(_event_from(row) for row in rows)


def newest_of_project(
    tx: Transaction,
    project: str,
    before: EventId | None,
    *,
    subject: str = "",
    kinds: Sequence[str] = (),
    limit: int,
) -> tuple[Event, ...]:
    """The latest events of one project, or of one thing in it, optionally before `before` or of some kinds only."""
    marks, values = in_list(kinds) if kinds else ("", {})
    only = f" AND kind IN ({marks})" if kinds else ""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM event WHERE project_id = :project AND (:before = '' OR id < :before)"
        f" AND (:subject = '' OR subject = :subject){only} ORDER BY id DESC LIMIT :limit",
        project=project,
        before=before or "",
        subject=subject,
        limit=limit,
        **values,
    )
    return tuple(_event_from(row) for row in rows)


def _event_from(row: Row) -> Event:
    id, at_us, kind, subject, project, details = row
    return Event(
        id=EventId(id),
        at=at_microseconds(at_us),
        kind=kind,
        subject=subject,
        project=project,
        details=msgspec.json.decode(details, type=Details),
    )
