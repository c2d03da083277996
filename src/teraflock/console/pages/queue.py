"""The queue: launches that wait for room, with their places and expected starts."""

from typing import Any, Final

from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission

pages = Pages()
ROWS: Final = 100
PATH: Final = "/projects/{project}/queue"


@pages.get(PATH, scope=Scope.PROJECT, may=Permission.INSTANCE_READ)
def list_queue(call: PageCall) -> Answer:
    """The queued launches of the project; for operators, also those of all tenants."""
    return call.page("queue/list.html", section="queue", **_listed(call))


@pages.get(f"{PATH}-rows", scope=Scope.PROJECT, may=Permission.INSTANCE_READ)
def list_queue_rows(call: PageCall) -> Answer:
    """The rows, requested again when something happens."""
    return call.part("queue/rows.html", **_listed(call))


@pages.post(
    f"{PATH}/{{queued}}/cancel", scope=Scope.PROJECT, may=Permission.INSTANCE_WRITE, on_error=list_queue
)
def cancel_queued(call: PageCall) -> Answer:
    """Take a launch out of the queue."""
    ended = call.client.queue.cancel(call.path["queued"])
    return call.done(call.url("queue"), "{name} does not wait any more", name=ended.name or ended.id)


def _listed(call: PageCall) -> dict[str, Any]:
    after, ended = call.request.query.text("after"), bool(call.request.query.text("ended"))
    page = call.client.queue.page(after=after, limit=ROWS, ended=ended)
    own = sorted(page.items, key=lambda each: (each.place is None, each.place or 0, each.id))
    everyone = call.client.operator.queue(limit=ROWS) if call.actor.is_operator else ()
    return {"own": own, "next": page.next, "after": after, "ended": ended, "everyone": everyone}
