"""The files of a dataset on this machine: their manifest, and the content of each chunk.

A chunk ends after 8 MiB, and before every file of 8 MiB or more. So a change in one file changes few chunks.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from teraflock.base.errors import BadInput
from teraflock.dataset.rules import FILES_MAX

CHUNK_BYTES: Final = 8 << 20
READ_BYTES: Final = 1 << 20


class LocalFile(NamedTuple):
    name: str
    path: Path
    size_bytes: int
    is_executable: bool
    begin: int
    """Where its content begins in that of all files."""


class LocalDataset:
    """A folder, or one file."""

    def __init__(self, path: Path) -> None:
        self.skipped = 0
        """Links and other things that are no plain files."""
        self.files: list[LocalFile] = []
        self.size_bytes = 0
        for name, each in sorted(self._found(path)):
            seen = each.stat()
            executable = bool(seen.st_mode & 0o111)
            self.files.append(LocalFile(name, each, seen.st_size, executable, self.size_bytes))
            self.size_bytes += seen.st_size
        if not self.files:
            raise BadInput(f"`{path}` has no files", hint="Name a file, or a folder with files")
        self._begins = [each.begin for each in self.files]
        self.chunks: list[tuple[str, int]] = []
        self._places: dict[str, tuple[int, int]] = {}

    def _found(self, path: Path) -> Iterator[tuple[str, Path]]:
        if path.is_file():
            yield path.name, path
            return
        if not path.is_dir():
            raise BadInput(f"There is no file or folder `{path}`", hint="Check the path")
        for below, folders, names in os.walk(path):
            for name in (*names, *(each for each in folders if (Path(below) / each).is_symlink())):
                each = Path(below) / name
                if each.is_symlink() or not each.is_file():
                    self.skipped += 1
                    continue
                yield each.relative_to(path).as_posix(), each

    def manifest(self, shown: Callable[[int, int], None] = lambda done, size: None) -> bytes:
        """Read everything once. Return the manifest."""
        if len(self.files) > FILES_MAX:
            raise BadInput(
                f"A dataset can have {FILES_MAX:,} files, not {len(self.files):,}",
                hint="Pack small files together, for example with tar",
            )
        self.chunks = []
        for begin, end in self._bounds():
            digest = sha256()
            for piece in self._content(begin, end):
                digest.update(piece)
            self.chunks.append((digest.hexdigest(), end - begin))
            self._places[digest.hexdigest()] = (begin, end)
            shown(end, self.size_bytes)
        files = [[each.name, each.size_bytes, each.is_executable] for each in self.files]
        try:
            return msgspec.json.encode({"files": files, "chunks": self.chunks})
        except UnicodeEncodeError:
            raise BadInput("The name of a file is not valid UTF-8", hint="Rename it") from None

    def chunk(self, digest: str) -> bytes:
        """Read a chunk again. Raise if its content changed meanwhile."""
        if digest not in self._places:
            raise BadInput("The server asks for a chunk that the data does not have", hint="Push it again")
        content = b"".join(self._content(*self._places[digest]))
        if sha256(content).hexdigest() != digest:
            raise _changed()
        return content

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """Where each chunk begins and ends."""
        large = [each.begin for each in self.files if each.size_bytes >= CHUNK_BYTES]
        cuts = sorted({*large, self.size_bytes})
        begin = 0
        for cut in cuts:
            while begin < cut:
                end = min(begin + CHUNK_BYTES, cut)
                yield begin, end
                begin = end

    def _content(self, begin: int, end: int) -> Iterator[bytes]:
        index = max(0, bisect_right(self._begins, begin) - 1)
        while begin < end:
            file = self.files[index]
            until = min(end, file.begin + file.size_bytes)
            if until > begin:
                yield from _part(file, begin - file.begin, until - file.begin)
                begin = until
            index += 1


def _part(file: LocalFile, begin: int, end: int) -> Iterator[bytes]:
    try:
        with file.path.open("rb") as opened:
            opened.seek(begin)
            while begin < end:
                piece = opened.read(min(READ_BYTES, end - begin))
                if not piece:
                    raise _changed()
                begin += len(piece)
                yield piece
    except OSError as error:
        raise BadInput(
            f"`{file.path}` cannot be read: {error.strerror}", hint="Check its permissions"
        ) from None


def _changed() -> BadInput:
    return BadInput("A file changed while it was pushed", hint="Push the data again")
