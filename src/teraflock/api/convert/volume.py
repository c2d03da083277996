"""Converters of volumes."""

from teraflock.base.filling import filled
from teraflock.instance.volume.model import ShownVolume
from teraflock.wire.volume import VolumeAnswer, VolumeCopyAnswer, VolumeSnapshotAnswer


def volume_answer(shown: ShownVolume) -> VolumeAnswer:
    volume = shown.volume
    return filled(
        VolumeAnswer,
        volume,
        instance=shown.instance,
        snapshots=tuple(filled(VolumeSnapshotAnswer, each) for each in shown.snapshots),
        copies=tuple(filled(VolumeCopyAnswer, each, host=host) for each, host in shown.copies),
    )
