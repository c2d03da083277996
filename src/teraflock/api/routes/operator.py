"""Instances of every tenant, for operators. Every action needs a reason, which the tenant sees."""

from teraflock.api.call import Call, cut
from teraflock.api.convert.event import event_answer
from teraflock.api.convert.instance import instance_answer, log_answer
from teraflock.api.convert.queue import queued_of_tenant_answer
from teraflock.api.query import LimitQuery, OperatorPageQuery, OperatorQuery, ReasonQuery, ServerEventsQuery
from teraflock.api.route import ENGINE, Routes, RouteWork, Scope
from teraflock.base.ids import EventId
from teraflock.fleet.alarms import ALERTS
from teraflock.instance.model import Located
from teraflock.storage.events import newest_of_project
from teraflock.tenant.rules import Permission
from teraflock.wire.event import EventPage
from teraflock.wire.instance import LogAnswer
from teraflock.wire.operator import LocatedInstance, LocatedPage, StartByOperator, StopByOperator
from teraflock.wire.queue import QueuedOfTenantList

routes = Routes(
    "operator", scope=Scope.INSTALLATION, read=Permission.INSTANCE_OPERATE, write=Permission.INSTANCE_OPERATE
)


@routes.get("/v1/operator/instances", errors=("ambiguous_name",))
def list_all_instances(call: Call, query: OperatorPageQuery) -> LocatedPage:
    """List the instances of every tenant, oldest first."""
    found = call.nouns.operator.page(
        call.actor,
        organisation=query.organisation or "",
        project=query.project or "",
        host=query.host or "",
        phase=query.state or "",
        after=query.after,
        limit=query.limit + 1,
    )
    rows, last = cut(found, query.limit)
    return LocatedPage(items=tuple(map(located_instance, rows)), next=last.view.instance.id if last else None)


@routes.get("/v1/operator/instances/{instance}", errors=("not_found", "ambiguous_name"))
def show_any_instance(call: Call, query: OperatorQuery, instance: str) -> LocatedInstance:
    """Show an instance of any tenant, by id or by a unique name."""
    return located_instance(_found(call, query, instance))


@routes.post(
    "/v1/operator/instances/{instance}/stop",
    status=202,
    errors=("not_found", "ambiguous_name", "conflict", "refused", "engine_down"),
)
def stop_any_instance(
    call: Call, query: OperatorQuery, instance: str, body: StopByOperator
) -> LocatedInstance:
    """Stop an instance and hold it. The tenant cannot start it until the hold is lifted."""
    found = _found(call, query, instance)
    call.nouns.operator.stop(call.actor, found, body.reason)
    return _again(call, found)


@routes.post(
    "/v1/operator/instances/{instance}/start",
    status=202,
    errors=(
        "not_found",
        "ambiguous_name",
        "conflict",
        "refused",
        "suspended",
        "budget_reached",
        "no_capacity",
        "engine_down",
    ),
)
def start_any_instance(
    call: Call, query: OperatorQuery, instance: str, body: StartByOperator
) -> LocatedInstance:
    """Lift the hold of an instance and start it."""
    found = _found(call, query, instance)
    call.nouns.operator.start(call.actor, found, body.reason, release_only=body.release_only)
    return _again(call, found)


@routes.delete(
    "/v1/operator/instances/{instance}", status=202, errors=("not_found", "ambiguous_name", "bad_input")
)
def delete_any_instance(call: Call, query: ReasonQuery, instance: str) -> LocatedInstance:
    """Delete an instance of any tenant with its disk and snapshots."""
    found = _found(call, query, instance)
    call.nouns.operator.delete(call.actor, found, query.reason)
    return _again(call, found)


@routes.get(
    "/v1/operator/instances/{instance}/log",
    work=RouteWork.LONG,
    errors=("not_found", "ambiguous_name", "bad_input", *ENGINE),
)
def show_any_log(call: Call, query: ReasonQuery, instance: str) -> LogAnswer:
    """Get the latest output of an instance of any tenant. The tenant sees that it was read, and why."""
    found = _found(call, query, instance)
    return log_answer(call.nouns.operator.log(call.actor, found, query.reason))


@routes.get("/v1/operator/queue", may=Permission.HOST_READ)
def list_whole_queue(call: Call, query: LimitQuery) -> QueuedOfTenantList:
    """List the launches of every tenant that wait for room, in the order of the queue."""
    queue = call.nouns.instances.queue
    found = queue.waiting_in_all_projects(limit=query.limit)
    places = queue.places() if found else {}
    return QueuedOfTenantList(items=tuple(queued_of_tenant_answer(each, places) for each in found))


@routes.get("/v1/operator/events", may=Permission.HOST_READ)
def list_server_events(call: Call, query: ServerEventsQuery) -> EventPage:
    """List the events of the server itself, such as a restart of its engine, newest first."""
    kinds = ALERTS if query.alerts else ()
    with call.services.snapshots.read() as tx:
        found = newest_of_project(tx, "", EventId(query.after), limit=query.limit + 1, kinds=kinds)
    rows, last = cut(found, query.limit)
    return EventPage(items=tuple(map(event_answer, rows)), next=last.id if last else None)


def _found(call: Call, query: OperatorQuery, ref: str) -> Located:
    return call.nouns.operator.find(
        call.actor, ref, organisation=query.organisation or "", project=query.project or ""
    )


def _again(call: Call, found: Located) -> LocatedInstance:
    return located_instance(call.nouns.operator.find(call.actor, found.view.instance.id))


def located_instance(found: Located) -> LocatedInstance:
    instance = found.view.instance
    return LocatedInstance(
        organisation_id=found.organisation_id,
        organisation=found.organisation_name,
        project=found.project_name,
        problem=instance.problem_operator or instance.problem,
        instance=instance_answer(found.view, enters=False),
    )
