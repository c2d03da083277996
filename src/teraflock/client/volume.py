"""Volumes of a project."""

from teraflock.client.noun import Noun
from teraflock.wire.volume import (
    VolumeAnswer,
    VolumeChange,
    VolumeList,
    VolumeRequest,
    VolumeSnapshotRequest,
    VolumeTarget,
)

_PATH = "volumes"


class Volumes(Noun):
    def list(self, *, instance: str = "") -> tuple[VolumeAnswer, ...]:
        """All of them, or those attached to one instance."""
        return self._get(VolumeList, _PATH, **({"instance": instance} if instance else {})).items

    def get(self, ref: str) -> VolumeAnswer:
        return self._get(VolumeAnswer, _PATH, ref)

    def create(
        self, name: str, size_bytes: int, *, copied: bool = False, idempotency_key: str = ""
    ) -> VolumeAnswer:
        body = VolumeRequest(name=name, size_bytes=size_bytes, copied=copied)
        return self._create(VolumeAnswer, _PATH, body=body, idempotency_key=idempotency_key)

    def resize(self, ref: str, size_bytes: int) -> VolumeAnswer:
        return self._act("PATCH", VolumeAnswer, _PATH, ref, body=VolumeChange(size_bytes=size_bytes))

    def copy(self, ref: str, copied: bool) -> VolumeAnswer:
        return self._act("PATCH", VolumeAnswer, _PATH, ref, body=VolumeChange(copied=copied))

    def recover(self, ref: str) -> VolumeAnswer:
        return self._act("POST", VolumeAnswer, _PATH, ref, "recover")

    def attach(self, ref: str, instance: str, path: str = "") -> VolumeAnswer:
        body = VolumeTarget(instance=instance, path=path)
        return self._act("PUT", VolumeAnswer, _PATH, ref, "instance", body=body)

    def detach(self, ref: str) -> VolumeAnswer:
        return self._act("DELETE", VolumeAnswer, _PATH, ref, "instance")

    def snapshot(self, ref: str, name: str, *, idempotency_key: str = "") -> VolumeAnswer:
        body = VolumeSnapshotRequest(name=name)
        return self._create(VolumeAnswer, _PATH, ref, "snapshots", body=body, idempotency_key=idempotency_key)

    def delete_snapshot(self, ref: str, name: str) -> VolumeAnswer:
        return self._act("DELETE", VolumeAnswer, _PATH, ref, "snapshots", name)

    def restore(self, ref: str, name: str) -> VolumeAnswer:
        return self._act("POST", VolumeAnswer, _PATH, ref, "snapshots", name, "restore")

    def delete(self, ref: str) -> None:
        self._send("DELETE", _PATH, ref)
