"""Instances: launch, read, change, delete. A request only records what is wanted; the loops do the work."""

from collections.abc import Generator
from typing import Annotated

from teraflock.api.call import Call, cut
from teraflock.api.convert.instance import (
    exec_answer,
    filter_from,
    instance_answer,
    instance_page,
    log_answer,
    order_from,
)
from teraflock.api.convert.queue import queued_answer
from teraflock.api.convert.shape import wish_from
from teraflock.api.query import FileQuery, InProject, InstancePageQuery, LogQuery
from teraflock.api.route import ENGINE, Routes, RouteWork, Scope
from teraflock.instance.archive import archive
from teraflock.instance.model import View
from teraflock.tenant.model import By
from teraflock.tenant.rules import Permission, in_project
from teraflock.wire.instance import (
    ChangeRequest,
    ExecAnswer,
    ExecRequest,
    InstanceAnswer,
    InstancePage,
    LaunchAnswer,
    LaunchRequest,
    LogAnswer,
    ResizeRequest,
)

routes = Routes(
    "instances", scope=Scope.PROJECT, read=Permission.INSTANCE_READ, write=Permission.INSTANCE_WRITE
)


@routes.get("/v1/instances")
def list_instances(call: Call, query: InstancePageQuery) -> Annotated[bytes, InstancePage]:
    """List the instances of a project, oldest first."""
    found = call.nouns.instances.page(
        call.project.id, after=query.after, limit=query.limit + 1, gone=query.gone, only=filter_from(query)
    )
    rows, last = cut(found, query.limit)
    return instance_page(rows, last.instance.id if last else None, enters=_enters(call))


@routes.post(
    "/v1/instances",
    status=202,
    creates=True,
    locks=True,
    errors=(
        "refused",
        "suspended",
        "quota_reached",
        "budget_reached",
        "no_capacity",
        "unknown_name",
        "engine_down",
    ),
)
def launch_instances(call: Call, query: InProject, body: LaunchRequest) -> LaunchAnswer:
    """Launch one or more instances.

    Either all of them are placed or none. The response comes immediately; `state` shows when they run. With `queue`, a
    launch without room waits for it; see `GET /v1/queue`. So does a launch on demand, or with a bid, that takes the
    GPUs of preemptible instances: they leave after a notice of a minute.
    """
    made, queued = call.nouns.instances.launch_or_queue(call.actor, call.project, order_from(body))
    return LaunchAnswer(
        items=tuple(
            instance_answer(view, enters=_enters(call)) for view in call.nouns.instances.views_of(made)
        ),
        queued=queued_answer(queued, {}) if queued else None,
    )


@routes.get("/v1/instances/{instance}")
def show_instance(call: Call, query: InProject, instance: str) -> InstanceAnswer:
    """Show one instance, by id or name."""
    return _shown(call, instance)


@routes.patch("/v1/instances/{instance}", errors=("suspended", "quota_reached"))
def change_instance(call: Call, query: InProject, instance: str, body: ChangeRequest) -> InstanceAnswer:
    """Change the labels or the bid of an instance.

    Later charges have the new labels; earlier charges keep the old ones. A new bid counts in the next auction, within
    seconds.
    """
    if body.bid_micros_per_hour is not None:
        bids = call.nouns.instances.bids
        bids.change(call.actor, call.project, instance, body.bid_micros_per_hour)
    return _shown(call, call.nouns.instances.label(call.actor, call.project, instance, body.labels).id)


@routes.delete("/v1/instances/{instance}", status=202)
def delete_instance(call: Call, query: InProject, instance: str) -> InstanceAnswer:
    """Delete an instance with its disk and snapshots."""
    return _shown(call, call.nouns.instances.delete(call.actor, call.project, instance).id)


@routes.post(
    "/v1/instances/{instance}/start",
    status=202,
    errors=("conflict", "refused", "suspended", "bad_input", "no_capacity", "budget_reached", "engine_down"),
)
def start_instance(call: Call, query: InProject, instance: str) -> InstanceAnswer:
    """Start a stopped instance. It needs free GPUs, vCPUs and memory again.

    An instance with a command runs it again with an empty log.
    """
    return _shown(call, call.nouns.instances.start(call.actor, call.project, instance).id)


@routes.post("/v1/instances/{instance}/stop", status=202, errors=("conflict", "refused", "engine_down"))
def stop_instance(call: Call, query: InProject, instance: str) -> InstanceAnswer:
    """Stop an instance. Its disk is kept."""
    return _shown(call, call.nouns.instances.stop(call.actor, call.project, instance).id)


@routes.post("/v1/instances/{instance}/restart", status=202, errors=("conflict", "refused", "engine_down"))
def restart_instance(call: Call, query: InProject, instance: str) -> InstanceAnswer:
    """Stop an instance and start it again on the same disk."""
    return _shown(call, call.nouns.instances.restart(call.actor, call.project, instance).id)


@routes.post("/v1/instances/{instance}/acknowledge")
def acknowledge_notice(call: Call, query: InProject, instance: str) -> InstanceAnswer:
    """Clear the notice of an instance, for example about a lost disk."""
    return _shown(call, call.nouns.instances.acknowledge(call.actor, call.project, instance).id)


@routes.post(
    "/v1/instances/{instance}/resize",
    status=202,
    errors=(
        "conflict",
        "refused",
        "suspended",
        "quota_reached",
        "budget_reached",
        "no_capacity",
        "unknown_name",
    ),
)
def resize_instance(call: Call, query: InProject, instance: str, body: ResizeRequest) -> InstanceAnswer:
    """Change the vCPUs, memory, disk or GPUs of an instance.

    If the engine can, the change applies while the instance runs. A change of GPUs restarts it.
    """
    changed = call.nouns.instances.resize(call.actor, call.project, instance, wish_from(body.shape))
    return _shown(call, changed.id)


@routes.post(
    "/v1/instances/{instance}/exec",
    may=Permission.INSTANCE_ENTER,
    work=RouteWork.LONG,
    errors=("conflict", *ENGINE),
)
def exec_in_instance(call: Call, query: InProject, instance: str, body: ExecRequest) -> ExecAnswer:
    """Run a command in an instance, without a shell, and wait until it ends."""
    ran = call.nouns.instances.guests.run(
        call.project.id,
        instance,
        body.command,
        stdin=body.stdin.encode(),
        seconds_max=body.seconds_max,
        by=By(actor=call.actor, project=call.project),
    )
    return exec_answer(ran)


@routes.get("/v1/instances/{instance}/log", may=Permission.INSTANCE_ENTER, work=RouteWork.LONG, errors=ENGINE)
def show_log(call: Call, query: LogQuery, instance: str) -> LogAnswer:
    """Get the latest output of an instance's command. Without a command: its console."""
    return log_answer(call.nouns.instances.guests.log(call.project.id, instance, query.source))


@routes.get(
    "/v1/instances/{instance}/archive",
    may=Permission.INSTANCE_ENTER,
    work=RouteWork.LONG,
    media_type="application/x-tar",
    errors=("conflict", "bad_input", *ENGINE),
)
def fetch_archive(call: Call, query: FileQuery, instance: str) -> Generator[bytes, None, None]:
    """Download a file or folder of a running or stopped instance as tar.

    The archive has only plain files and folders, no links, and at most 1 GB and 10,000 files. A response that breaks
    off early is incomplete.
    """
    yield from archive(call.nouns.instances.guests.files(call.project.id, instance), query.path)


def _enters(call: Call) -> bool:
    return Permission.INSTANCE_ENTER in in_project(call.actor, call.project)


def _shown(call: Call, ref: str) -> InstanceAnswer:
    view: View = call.nouns.instances.view(call.project.id, ref)
    return instance_answer(view, enters=_enters(call))
