"""Snapshots of an instance's disk."""

from teraflock.api.call import Call
from teraflock.api.convert.instance import instance_answer
from teraflock.api.query import InProject
from teraflock.api.route import ENGINE, Routes, RouteWork, Scope
from teraflock.base.filling import filled
from teraflock.instance.model import Snapshot
from teraflock.tenant.rules import Permission, in_project
from teraflock.wire.instance import InstanceAnswer
from teraflock.wire.snapshot import RestoreRequest, SnapshotAnswer, SnapshotList, SnapshotRequest

routes = Routes(
    "snapshots", scope=Scope.PROJECT, read=Permission.INSTANCE_READ, write=Permission.INSTANCE_WRITE
)


@routes.get("/v1/instances/{instance}/snapshots")
def list_snapshots(call: Call, query: InProject, instance: str) -> SnapshotList:
    """List the snapshots of an instance."""
    found = call.nouns.instances.snapshots.page(call.project.id, instance)
    return SnapshotList(items=tuple(map(snapshot_answer, found)))


@routes.post(
    "/v1/instances/{instance}/snapshots",
    status=202,
    creates=True,
    locks=True,
    errors=("conflict", "refused", "suspended", "quota_reached", "engine_down"),
)
def make_snapshot(call: Call, query: InProject, instance: str, body: SnapshotRequest) -> SnapshotAnswer:
    """Create a snapshot of an instance's disk."""
    return snapshot_answer(
        call.nouns.instances.snapshots.create(call.actor, call.project, instance, body.name)
    )


@routes.delete(
    "/v1/instances/{instance}/snapshots/{snapshot}",
    status=204,
    work=RouteWork.LONG,
    errors=("conflict", *ENGINE),
)
def delete_snapshot(call: Call, query: InProject, instance: str, snapshot: str) -> None:
    """Delete a snapshot."""
    call.nouns.instances.snapshots.delete(call.actor, call.project, instance, snapshot)


@routes.post("/v1/instances/{instance}/restore", status=202, errors=("conflict",))
def restore_instance(call: Call, query: InProject, instance: str, body: RestoreRequest) -> InstanceAnswer:
    """Restore an instance's disk from a snapshot. A running instance is restarted."""
    instances = call.nouns.instances
    restored = instances.snapshots.restore(call.actor, call.project, instance, body.snapshot)
    enters = Permission.INSTANCE_ENTER in in_project(call.actor, call.project)
    return instance_answer(instances.view(call.project.id, restored.id), enters=enters)


def snapshot_answer(snapshot: Snapshot) -> SnapshotAnswer:
    return filled(SnapshotAnswer, snapshot)
