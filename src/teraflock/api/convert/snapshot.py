"""Snapshots on the wire."""

from teraflock.instance.model import Snapshot
from teraflock.wire.snapshot import SnapshotAnswer


def snapshot_answer(snapshot: Snapshot) -> SnapshotAnswer:
    return SnapshotAnswer(
        id=snapshot.id,
        name=snapshot.name,
        state=snapshot.state,
        problem=snapshot.problem,
        size_bytes=snapshot.size_bytes,
        created_at=snapshot.created_at,
    )
