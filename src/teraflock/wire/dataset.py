"""Datasets on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec

from teraflock.wire.field import Name
from teraflock.wire.run import Digest
from teraflock.wire.word import closed


class DatasetRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    manifest: Digest
    """The SHA-256 of the manifest, which was uploaded with `PUT /v1/run-files/{digest}`. It is a JSON object: `files`
    lists `[path, size, executable]` sorted by path, and `chunks` lists `[sha256, size]` of the content of all files,
    one after the other, in chunks of up to 8 MiB."""


class DatasetAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    state: Annotated[str, closed("uploading", "ready", "deleting")]
    size_bytes: int
    files: int
    digest: str
    """SHA-256 of the manifest. The same content has the same digest."""
    created_at: datetime
    created_by: str
    ready_at: datetime | None


class DatasetList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[DatasetAnswer, ...]


class ChunkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    digest: str
    size_bytes: int


class MissingChunks(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ChunkAnswer, ...]
    """The first of them."""
    count: int
    """All of them."""
