"""Snapshots on the wire."""

from teraflock.base.filling import filled
from teraflock.instance.model import Snapshot
from teraflock.wire.snapshot import SnapshotAnswer


def snapshot_answer(snapshot: Snapshot) -> SnapshotAnswer:
    return filled(SnapshotAnswer, snapshot)
