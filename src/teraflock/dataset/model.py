"""Values of datasets. A dataset never changes: other content is another dataset.

The *manifest* lists its files and the *chunks* into which their content is divided, in the order of the files.
"""

from collections.abc import Mapping, Set
from datetime import datetime
from enum import StrEnum
from typing import Final, NewType

import msgspec

from teraflock.tenant.model import ProjectId

DatasetId = NewType("DatasetId", str)
PREFIX: Final = "dat"
FOLDER: Final = "/data"
"""Where guests find their datasets, each in a folder of its name. `$TERA_DATA` has this path."""


class DatasetState(StrEnum):
    UPLOADING = "uploading"
    READY = "ready"
    DELETING = "deleting"


DATASET_MOVES: Final[Mapping[DatasetState, Set[DatasetState]]] = {
    DatasetState.UPLOADING: {DatasetState.READY, DatasetState.DELETING},
    DatasetState.READY: {DatasetState.DELETING},
    DatasetState.DELETING: frozenset(),  # then its row is removed
}


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    id: DatasetId
    project_id: ProjectId
    name: str
    state: DatasetState
    digest: str
    """SHA-256 of the manifest: the same content has the same digest."""
    size_bytes: int
    files: int
    chunks: int
    created_at: datetime
    created_by: str
    ready_at: datetime | None = None
    used_at: datetime
    """When a chunk was last uploaded, or the state changed."""


class DatasetMount(msgspec.Struct, frozen=True):
    """A dataset of an instance. It appears, read-only, as `FOLDER/name`."""

    id: str
    name: str


class DatasetCopy(msgspec.Struct, frozen=True, kw_only=True):
    """A complete copy of a dataset on a host."""

    dataset_id: str
    host: str


class ManifestFile(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    path: str
    size_bytes: int
    is_executable: bool = False


class ManifestChunk(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    digest: str
    size_bytes: int


class DatasetManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    files: tuple[ManifestFile, ...]
    """Sorted by path."""
    chunks: tuple[ManifestChunk, ...]

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.files)
