"""Volumes: disks that outlive instances."""

from teraflock.api.call import Call
from teraflock.api.query import InProject, OfInstanceQuery
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.instance.volume.model import ShownVolume
from teraflock.tenant.rules import Permission
from teraflock.wire.volume import (
    VolumeAnswer,
    VolumeChange,
    VolumeCopyAnswer,
    VolumeList,
    VolumeRequest,
    VolumeSnapshotAnswer,
    VolumeSnapshotRequest,
    VolumeTarget,
)

routes = Routes(
    "volumes", scope=Scope.PROJECT, read=Permission.INSTANCE_READ, write=Permission.INSTANCE_WRITE
)


@routes.get("/v1/volumes")
def list_volumes(call: Call, query: OfInstanceQuery) -> VolumeList:
    """List the volumes of a project, or those attached to one instance."""
    found = call.nouns.instances.volumes.all(call.project, instance=query.instance)
    return VolumeList(items=tuple(map(volume_answer, found)))


@routes.post(
    "/v1/volumes",
    status=201,
    creates=True,
    locks=True,
    errors=("suspended", "quota_reached", "budget_reached"),
)
def create_volume(call: Call, query: InProject, body: VolumeRequest) -> VolumeAnswer:
    """Create a volume. It is charged as a disk until you delete it."""
    return volume_answer(
        call.nouns.instances.volumes.create(
            call.actor, call.project, body.name, body.size_bytes, copied=body.copied
        )
    )


@routes.get("/v1/volumes/{volume}")
def show_volume(call: Call, query: InProject, volume: str) -> VolumeAnswer:
    """Show one volume with its snapshots, by id or name."""
    return volume_answer(call.nouns.instances.volumes.volume(call.project, volume))


@routes.patch("/v1/volumes/{volume}", locks=True, errors=("suspended", "quota_reached", "budget_reached"))
def resize_volume(call: Call, query: InProject, volume: str, body: VolumeChange) -> VolumeAnswer:
    """Let a volume grow, also while an instance has it, or change whether it is copied."""
    volumes = call.nouns.instances.volumes
    if body.copied is not None:
        volumes.copy(call.actor, call.project, volume, body.copied)
    if body.size_bytes is not None:
        volumes.resize(call.actor, call.project, volume, body.size_bytes)
    return volume_answer(volumes.volume(call.project, volume))


@routes.post("/v1/volumes/{volume}/recover", locks=True, errors=("conflict",))
def recover_volume(call: Call, query: InProject, volume: str) -> VolumeAnswer:
    """Let the last copy of a volume take its place, when its host is lost. What was written since is lost, and its
    snapshots are."""
    return volume_answer(call.nouns.instances.volumes.recover(call.actor, call.project, volume))


@routes.put("/v1/volumes/{volume}/instance", status=202, locks=True, errors=("engine_down",))
def attach_volume(call: Call, query: InProject, volume: str, body: VolumeTarget) -> VolumeAnswer:
    """Give a free volume to an instance, running or stopped. It appears there within a moment."""
    return volume_answer(
        call.nouns.instances.volumes.attach(call.actor, call.project, volume, body.instance, body.path)
    )


@routes.delete("/v1/volumes/{volume}/instance", status=202, locks=True)
def detach_volume(call: Call, query: InProject, volume: str) -> VolumeAnswer:
    """Take a volume from its instance. Close its files there first."""
    return volume_answer(call.nouns.instances.volumes.detach(call.actor, call.project, volume))


@routes.post(
    "/v1/volumes/{volume}/snapshots",
    status=202,
    creates=True,
    locks=True,
    errors=("suspended", "quota_reached"),
)
def snapshot_volume(call: Call, query: InProject, volume: str, body: VolumeSnapshotRequest) -> VolumeAnswer:
    """Create a snapshot of a volume. It is charged by what it adds."""
    return volume_answer(call.nouns.instances.volumes.snapshot(call.actor, call.project, volume, body.name))


@routes.delete("/v1/volumes/{volume}/snapshots/{snapshot}", status=202, locks=True)
def delete_volume_snapshot(call: Call, query: InProject, volume: str, snapshot: str) -> VolumeAnswer:
    """Delete a snapshot of a volume."""
    return volume_answer(
        call.nouns.instances.volumes.delete_snapshot(call.actor, call.project, volume, snapshot)
    )


@routes.post(
    "/v1/volumes/{volume}/snapshots/{snapshot}/restore", status=202, locks=True, errors=("conflict",)
)
def restore_volume(call: Call, query: InProject, volume: str, snapshot: str) -> VolumeAnswer:
    """Replace the content of a free volume with that of a snapshot."""
    return volume_answer(call.nouns.instances.volumes.restore(call.actor, call.project, volume, snapshot))


@routes.delete("/v1/volumes/{volume}", status=204, locks=True)
def delete_volume(call: Call, query: InProject, volume: str) -> None:
    """Delete a free volume with its snapshots. It is charged until now."""
    call.nouns.instances.volumes.delete(call.actor, call.project, volume)


def volume_answer(shown: ShownVolume) -> VolumeAnswer:
    volume = shown.volume
    return filled(
        VolumeAnswer,
        volume,
        instance=shown.instance,
        snapshots=tuple(filled(VolumeSnapshotAnswer, each) for each in shown.snapshots),
        copies=tuple(filled(VolumeCopyAnswer, each, host=host) for each, host in shown.copies),
    )
