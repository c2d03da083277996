"""Events of a project or an instance, in pages and as a stream."""

from teraflock.api.call import Call, cut
from teraflock.api.convert.event import event_answer
from teraflock.api.query import EventPageQuery, PageInProject
from teraflock.api.route import Routes, Scope
from teraflock.base.events import Event
from teraflock.base.ids import EventId
from teraflock.storage.events import events_of_project, newest_of_project
from teraflock.tenant.rules import Permission
from teraflock.wire.event import EventPage

routes = Routes("events", scope=Scope.PROJECT, read=Permission.INSTANCE_READ)


@routes.get("/v1/events")
def list_events(call: Call, query: EventPageQuery) -> EventPage:
    """List the events of a project, oldest first unless `newest_first` is set."""
    return _page(call, query, "")


@routes.get("/v1/instances/{instance}/events")
def list_instance_events(call: Call, query: EventPageQuery, instance: str) -> EventPage:
    """List the events of one instance, oldest first unless `newest_first` is set."""
    view = call.nouns.instances.view(call.project.id, instance)
    return _page(call, query, view.instance.id)


@routes.get("/v1/events/stream", stream=True, media_type="text/event-stream")
def follow_events(call: Call, query: PageInProject) -> bytes:
    """Stream the events of a project as server-sent events.

    `Last-Event-ID` or `after` resumes the stream after an event. The last few events may be sent again; compare their
    ids. Without it, the stream starts now. A comment is sent every 15 seconds while there are no events.
    """
    raise NotImplementedError("api/asgi.py follows the events itself")


def _page(call: Call, query: EventPageQuery, subject: str) -> EventPage:
    read = newest_of_project if query.newest_first else events_of_project
    with call.services.snapshots.read() as tx:
        found: tuple[Event, ...] = read(
            tx, call.project.id, EventId(query.after), subject=subject, limit=query.limit + 1
        )
    rows, last = cut(found, query.limit)
    return EventPage(items=tuple(map(event_answer, rows)), next=last.id if last else None)
