"""The content of datasets on the server, below one folder.

    DATASET/manifest.json
    DATASET/ab/ab34…        a chunk, named by its SHA-256; `.part` while it arrives

With a bucket, complete chunks are moved to it, under the same names. Chunks are checked when they arrive and when they
are read. With several servers, all of them need the same folder.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

from teraflock.base.errors import Refused, Unavailable
from teraflock.dataset import receiving
from teraflock.dataset.model import DatasetManifest, ManifestChunk
from teraflock.dataset.rules import manifest_from

MANIFEST: Final = "manifest.json"
FREE_BYTES_MIN: Final = 2 << 30
"""The folder's disk keeps this much free: the database may be on it."""
MANIFESTS_CACHED: Final = 8


class ChunkBucket(Protocol):
    """Where chunks are kept instead of the folder."""

    def put(self, key: str, content: bytes) -> None: ...

    def get(self, key: str) -> bytes: ...

    def sizes(self, prefix: str) -> Mapping[str, int]:
        """The sizes of all objects below a prefix, by key."""
        ...

    def remove(self, prefix: str) -> None:
        """Remove all objects below a prefix."""
        ...


class DatasetFiles:
    def __init__(self, folder: Path, bucket: ChunkBucket | None = None) -> None:
        self._folder = folder
        self._bucket = bucket
        self.manifest = lru_cache(maxsize=MANIFESTS_CACHED)(self._manifest)

    def keep_manifest(self, id: str, content: bytes) -> None:
        path = self._folder / id / MANIFEST
        self._check_free(len(content))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path.with_name(f"{MANIFEST}.new")
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    def _manifest(self, id: str) -> DatasetManifest:
        path = self._folder / id / MANIFEST
        if not path.exists():
            raise Unavailable("The server does not have the manifest of the dataset", hint="Push it again")
        return manifest_from(path.read_bytes())

    def missing(self, id: str) -> list[ManifestChunk]:
        """The chunks that have not arrived completely, each once."""
        wanted = {each.digest: each for each in self.manifest(id).chunks}
        there = self._sizes(id)
        return [each for each in wanted.values() if there.get(each.digest) != each.size_bytes]

    def received_bytes(self, id: str, chunk: ManifestChunk) -> tuple[int, bool]:
        return receiving.received_bytes(self._chunk(id, chunk.digest))

    def receive(self, id: str, chunk: ManifestChunk, offset: int, content: bytes) -> tuple[int, bool]:
        """Add a piece of a chunk."""
        path = self._chunk(id, chunk.digest)
        self._check_free(len(content))
        received, complete = receiving.receive(path, chunk.digest, offset, content, chunk.size_bytes)
        if complete and self._bucket is not None and path.exists():
            self._bucket.put(_key(id, chunk.digest), path.read_bytes())
            path.unlink(missing_ok=True)
        return received, complete

    def content(self, id: str) -> Iterator[bytes]:
        """The content of all files, one after the other."""
        for chunk in self.manifest(id).chunks:
            content = self._read(id, chunk.digest)
            if sha256(content).hexdigest() != chunk.digest:
                raise Unavailable("A part of the dataset is damaged on the server", hint="Push it again")
            yield content

    def remove(self, id: str) -> None:
        if self._bucket is not None:
            self._bucket.remove(f"{id}/")
        shutil.rmtree(self._folder / id, ignore_errors=True)

    def kept(self, before: float) -> list[str]:
        """The ids of all folders that are older than a time."""
        if not self._folder.exists():
            return []
        return sorted(each.name for each in self._folder.iterdir() if each.stat().st_mtime < before)

    def _sizes(self, id: str) -> dict[str, int]:
        found: dict[str, int] = {}
        if self._bucket is not None:
            return {key.rpartition("/")[2]: size for key, size in self._bucket.sizes(f"{id}/").items()}
        for folder in (self._folder / id).glob("??"):
            with os.scandir(folder) as entries:
                found |= {each.name: each.stat().st_size for each in entries}
        return found

    def _read(self, id: str, digest: str) -> bytes:
        if self._bucket is not None:
            return self._bucket.get(_key(id, digest))
        path = self._chunk(id, digest)
        return path.read_bytes() if path.exists() else b""

    def _chunk(self, id: str, digest: str) -> Path:
        return self._folder / _key(id, digest)

    def _check_free(self, more: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if shutil.disk_usage(self._folder).free - more < FREE_BYTES_MIN:
            raise Refused(
                "The disk of the server is almost full",
                hint="Delete data that you no longer need, or ask the operator for more room",
            )


def _key(id: str, digest: str) -> str:
    return f"{id}/{digest[:2]}/{digest}"
