"""Converters of volumes."""

from teraflock.instance.volume.model import ShownVolume
from teraflock.wire.volume import VolumeAnswer, VolumeCopyAnswer, VolumeSnapshotAnswer


def volume_answer(shown: ShownVolume) -> VolumeAnswer:
    volume = shown.volume
    return VolumeAnswer(
        id=volume.id,
        name=volume.name,
        state=volume.state,
        size_bytes=volume.size_bytes,
        snapshots_bytes=volume.snapshots_bytes,
        instance=shown.instance,
        path=volume.path,
        problem=volume.problem,
        snapshots=tuple(
            VolumeSnapshotAnswer(
                name=each.name, state=each.state, size_bytes=each.size_bytes, created_at=each.created_at
            )
            for each in shown.snapshots
        ),
        copied=volume.copied,
        copies=tuple(
            VolumeCopyAnswer(state=each.state, host=host, size_bytes=each.size_bytes, made_at=each.made_at)
            for each, host in shown.copies
        ),
        created_at=volume.created_at,
        created_by=volume.created_by,
    )
