"""Queued launches: list, show, cancel. `POST /v1/instances` with `queue` adds them."""

from teraflock.api.call import Call, cut
from teraflock.api.convert.queue import queued_answer
from teraflock.api.query import InProject, QueuePageQuery
from teraflock.api.route import Routes, Scope
from teraflock.instance.queue.model import QueueState
from teraflock.tenant.rules import Permission
from teraflock.wire.queue import QueuedAnswer, QueuedPage

routes = Routes("queue", scope=Scope.PROJECT, read=Permission.INSTANCE_READ, write=Permission.INSTANCE_WRITE)


@routes.get("/v1/queue")
def list_queue(call: Call, query: QueuePageQuery) -> QueuedPage:
    """List the launches of a project that wait for room, oldest first, with their places and expected starts."""
    queue = call.nouns.instances.queue
    found = queue.page(call.project.id, after=query.after, limit=query.limit + 1, ended=query.ended)
    rows, last = cut(found, query.limit)
    places = queue.places() if rows else {}
    return QueuedPage(
        items=tuple(queued_answer(each, places) for each in rows), next=last.id if last else None
    )


@routes.get("/v1/queue/{queued}")
def show_queued(call: Call, query: InProject, queued: str) -> QueuedAnswer:
    """Show one queued launch, by id or name. It can be seen for 7 days after it left the queue."""
    queue = call.nouns.instances.queue
    found = queue.show(call.project.id, queued)
    waits = found.id if found.state == QueueState.WAITING else ""
    return queued_answer(found, queue.places(including=waits))


@routes.delete("/v1/queue/{queued}", errors=("conflict",))
def cancel_queued(call: Call, query: InProject, queued: str) -> QueuedAnswer:
    """Cancel a queued launch. One that has started already is refused: delete its instances instead."""
    return queued_answer(call.nouns.instances.queue.cancel(call.actor, call.project, queued), {})
