"""An installation whose loops also serve datasets, and a client that pushes them."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from tests.faults.run_installation import RunInstallation

from teraflock.base.clock import FixedClock
from teraflock.dataset.files import ChunkBucket, DatasetFiles
from teraflock.dataset.model import Dataset
from teraflock.dataset.service import DatasetService
from teraflock.drivers.simulated.faults import Killed
from teraflock.drivers.simulated.world import World
from teraflock.reconcile.datasets import DatasetLoop
from teraflock.reconcile.run_acts import RunActs
from teraflock.reconcile.volumes import VolumeLoop
from teraflock.storage.database import Database
from teraflock.tenant.model import Project

CHUNK = 1000


class DataInstallation(RunInstallation):
    def __init__(
        self,
        database: Database,
        world: World,
        clock: FixedClock,
        folder: Path,
        *,
        bucket: ChunkBucket | None = None,
        **more: Any,
    ) -> None:
        super().__init__(database, world, clock, folder / "runs", **more)
        self.stored = DatasetFiles(folder / "datasets", bucket)
        self.datasets = DatasetService(
            database, clock, self.stored, self.files.whole_upload, random_bytes=self.random_bytes
        )
        self.data_loop = DatasetLoop(self.workers[0].around, self.stored)
        self.volume_loop = VolumeLoop(self.workers[0].around)
        acts: RunActs = self.loop._acts
        acts._starts._dataset_files = self.stored

    def announce(self, name: str, files: dict[str, bytes], project: Project | None = None) -> Dataset:
        """Upload the manifest and announce the dataset."""
        at = project or self.tenant.project
        manifest = manifest_of(files)
        digest = sha256(manifest).hexdigest()
        self.files.receive(at.id, digest, 0, manifest, len(manifest))
        return self.datasets.create(self.tenant.actor, at, name, digest)

    def push(self, name: str, files: dict[str, bytes], project: Project | None = None) -> Dataset:
        at = project or self.tenant.project
        made = self.announce(name, files, at)
        content = b"".join(files[each] for each in sorted(files))
        chunks = {sha256(each).hexdigest(): each for each in pieces(content)}
        lacks, _ = self.datasets.missing(at, made.id, limit=10_000)
        for each in lacks:
            self.datasets.receive(at, made.id, each.digest, 0, chunks[each.digest])
        return self.datasets.complete(self.tenant.actor, at, made.id)

    def turn(self, seconds: float = 1.0) -> None:
        self.survive(lambda: super(DataInstallation, self).turn(seconds), 0)
        try:
            self.data_loop.turn()
            self.volume_loop.turn()
        except Killed:  # a new process
            self.data_loop = DatasetLoop(self.workers[0].around, self.stored)
            self.volume_loop = VolumeLoop(self.workers[0].around)


def pieces(content: bytes) -> list[bytes]:
    return [content[at : at + CHUNK] for at in range(0, len(content), CHUNK)]


def manifest_of(files: dict[str, bytes]) -> bytes:
    content = b"".join(files[each] for each in sorted(files))
    return msgspec.json.encode(
        {
            "files": [[name, len(files[name]), False] for name in sorted(files)],
            "chunks": [[sha256(each).hexdigest(), len(each)] for each in pieces(content)],
        }
    )
