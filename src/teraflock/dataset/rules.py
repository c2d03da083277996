"""Checks of manifests, and a dataset as a tar. Pure.

A manifest comes from a tenant and is not trusted. What passes `checked` has only plain files with relative paths below
one folder; links, devices and owners cannot be expressed. Every tar of a dataset is made here, from a checked manifest.
"""

import re
import tarfile
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.base.quantities import bytes_text
from teraflock.dataset.model import DatasetManifest, ManifestFile

CHUNK_BYTES_MAX: Final = 8 << 20
MANIFEST_BYTES_MAX: Final = 64 << 20
FILES_MAX: Final = 400_000
CHUNKS_MAX: Final = 400_000
FOLDERS_MAX: Final = 400_000
"""Counted too: a file with a deep path has many of its own, each with memory here and room on every host."""
DATASET_BYTES_MAX: Final = 1 << 40
PATH_BYTES_MAX: Final = 1000
NAME_BYTES_MAX: Final = 255
DEPTH_MAX: Final = 64
DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_BLOCK: Final = 512
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_decoder: Final = msgspec.json.Decoder(DatasetManifest)


def manifest_from(content: bytes) -> DatasetManifest:
    """Decode and check a manifest."""
    try:
        found = _decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _bad(f"The manifest cannot be read: {error}") from None
    return checked(found)


def checked(manifest: DatasetManifest) -> DatasetManifest:
    """Return a manifest that is safe to unpack, or raise `BadInput`."""
    files = manifest.files
    if not 0 < len(files) <= FILES_MAX:
        raise _bad(f"A dataset has 1 to {FILES_MAX:,} files, not {len(files):,}", "Pack small files together")
    before = ""
    for each in files:
        _check_path(each)
        if each.path <= before:
            raise _bad(f"`{each.path[:80]}` is listed twice, or the files are not sorted by path")
        before = each.path
    _check_folders(files)
    if len(manifest.chunks) > CHUNKS_MAX:
        raise _bad(f"A dataset has up to {CHUNKS_MAX:,} chunks", "Use larger chunks")
    sizes = dict[str, int]()
    for chunk in manifest.chunks:
        if sizes.setdefault(chunk.digest, chunk.size_bytes) != chunk.size_bytes:
            raise _bad("The same chunk has two sizes")
        if not DIGEST.fullmatch(chunk.digest) or not 0 < chunk.size_bytes <= CHUNK_BYTES_MAX:
            raise _bad(f"A chunk has a SHA-256 and 1 byte to {bytes_text(CHUNK_BYTES_MAX)}")
    size = manifest.size_bytes
    if size > DATASET_BYTES_MAX:
        raise _bad(
            f"A dataset can have at most {bytes_text(DATASET_BYTES_MAX)}, not {bytes_text(size)}", "Divide it"
        )
    if sum(each.size_bytes for each in manifest.chunks) != size:
        raise _bad("The chunks and the files do not have the same size")
    return manifest


def _check_path(file: ManifestFile) -> None:
    path = file.path
    names = path.split("/")
    try:
        sizes = [len(name.encode()) for name in names]
    except UnicodeEncodeError:
        raise _bad("A path is not valid UTF-8", "Rename the file") from None
    is_bad = (
        any(name in ("", ".", "..") for name in names)
        or max(sizes) > NAME_BYTES_MAX
        or sum(sizes) + len(sizes) > PATH_BYTES_MAX
        or len(names) > DEPTH_MAX
        or _CONTROL.search(path)
    )
    if is_bad:
        shown = "".join(each if each.isprintable() else "?" for each in path[:80])
        raise _bad(
            f"`{shown}` cannot be the path of a file in a dataset",
            "Use a relative path without `..` and control characters, up to 1000 bytes",
        )
    if file.size_bytes < 0:
        raise _bad(f"`{path[:80]}` has a negative size")


def _check_folders(files: Iterable[ManifestFile]) -> None:
    """Refuse a path that is a file and also the folder of another file."""
    paths = {each.path for each in files}
    folders = set[str]()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
        if len(folders) > FOLDERS_MAX:
            raise _bad(f"A dataset has up to {FOLDERS_MAX:,} folders", "Pack small files together")
    if both := folders & paths:
        raise _bad(f"`{min(both)[:80]}` is a file and a folder at the same time")


def tar_of(manifest: DatasetManifest, content: Iterable[bytes]) -> Iterator[bytes]:
    """The dataset as a tar, in pieces. `content` is that of all files, one after the other, in any division."""
    pieces, rest = iter(content), b""
    for file in manifest.files:
        yield _head(file)
        left = file.size_bytes
        while left:
            rest = rest or next(pieces)
            piece, rest = rest[:left], rest[left:]
            left -= len(piece)
            yield piece
        yield bytes(-file.size_bytes % _BLOCK)
    yield bytes(2 * _BLOCK)


def joined(pieces: Iterable[bytes], size_bytes: int) -> Iterator[bytes]:
    """The same content in pieces of about this size."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        if len(buffer) >= size_bytes:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)


def _head(file: ManifestFile) -> bytes:
    """Owned by root, without a time: the tar of a dataset is always the same."""
    head = tarfile.TarInfo(file.path)
    head.size = file.size_bytes
    head.mode = 0o755 if file.is_executable else 0o644
    return head.tobuf(tarfile.PAX_FORMAT)


def _bad(sentence: str, hint: str = "Push the data again with `tera data push`") -> BadInput:
    return BadInput(sentence, hint=hint)
