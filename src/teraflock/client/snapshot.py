"""Snapshots of an instance's disk."""

from teraflock.client.noun import Noun
from teraflock.wire.instance import InstanceAnswer
from teraflock.wire.snapshot import RestoreRequest, SnapshotAnswer, SnapshotList, SnapshotRequest


class Snapshots(Noun):
    def list(self, instance: str) -> tuple[SnapshotAnswer, ...]:
        return self._get(SnapshotList, "instances", instance, "snapshots").items

    def create(self, instance: str, request: SnapshotRequest, *, idempotency_key: str = "") -> SnapshotAnswer:
        path = ("instances", instance, "snapshots")
        return self._create(SnapshotAnswer, *path, body=request, idempotency_key=idempotency_key)

    def restore(self, instance: str, request: RestoreRequest) -> InstanceAnswer:
        return self._act("POST", InstanceAnswer, "instances", instance, "restore", body=request)

    def delete(self, instance: str, snapshot: str) -> None:
        self._send("DELETE", "instances", instance, "snapshots", snapshot)
