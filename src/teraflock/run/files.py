"""The files of runs on the server: uploads, logs, outputs and checkpoints, below one folder.

    uploads/PROJECT/SHA256          a tar with the files of runs, named by its content; `.part` while it arrives
                                    `.pieces` lists its pieces, for the next upload
    runs/RUN/log                    the output of the command, over all attempts; `log-1` is that of node 1
    runs/RUN/outputs.tar
    runs/RUN/ID.tar                 a checkpoint

With a bucket, outputs and checkpoints are objects RUN/NAME there instead. Older ones are still found in the folder.

Invariants: a file without `.part` or `.new` is complete and on disk; every name is one that the server made; nothing
of a guest or a client is extracted here. With several servers, all of them need the same folder.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from teraflock.base.errors import BadInput, Conflict, Refused
from teraflock.base.quantities import bytes_text
from teraflock.dataset import receiving
from teraflock.run.bucket import RunBucket
from teraflock.run.pieces import LISTED, UploadPiece, assemble, list_of, missing

DIGEST: Final = re.compile(r"[0-9a-f]{64}")
UPLOAD_BYTES_MAX: Final = 256 << 20
PROJECT_BYTES_MAX: Final = 4 << 30
"""Of all uploads of one project. The oldest unused ones are removed after a week."""
UPLOADS_MAX: Final = 2000
"""Of one project: also empty ones need room, and every upload looks at all of them."""
LOG_BYTES_MAX: Final = 16 << 20
PIECE_BYTES: Final = 1 << 20
CUT: Final = b"\n[the log is larger than 16 MiB; the rest is not kept]\n"


def is_full(log_bytes: int) -> bool:
    """Whether nothing more is kept of a log of this size. It includes the line that says so."""
    return log_bytes > LOG_BYTES_MAX


class Damaged(Exception):
    """A file has another content than the one that was kept, or is missing."""


class RunFiles:
    def __init__(self, folder: Path, bucket: RunBucket | None = None) -> None:
        """`bucket` keeps outputs and checkpoints. None: the folder does."""
        self._folder = folder
        self._bucket = bucket

    # uploads

    def received_bytes(self, project: str, digest: str) -> tuple[int, bool]:
        """How much of an upload has arrived, and whether it is complete."""
        return receiving.received_bytes(self._upload(project, digest))

    def receive(
        self, project: str, digest: str, offset: int, content: bytes, size_bytes: int
    ) -> tuple[int, bool]:
        """Add a piece of an upload. The last piece completes it, if its content has the digest."""
        path = self._upload(project, digest)
        if path.exists():
            return path.stat().st_size, True
        self._check_room(path, size_bytes)
        return receiving.receive(path, digest, offset, content, size_bytes)

    def missing_pieces(self, project: str, digest: str, pieces: Sequence[UploadPiece]) -> tuple[int, ...]:
        """Which pieces of an upload have to be sent, because no earlier upload of the project has them."""
        return () if (path := self._upload(project, digest)).exists() else missing(path.parent, pieces)

    def assemble(self, project: str, digest: str, pieces: Sequence[UploadPiece], rest: str) -> int:
        """Make an upload from pieces, and return its size. `rest` is an upload with the missing ones, or empty."""
        path, other = self._upload(project, digest), self._upload(project, rest) if rest else None
        size = sum(piece.size_bytes for piece in pieces)
        if not path.exists():
            self._check_room(path, size)
        assemble(path, digest, pieces, other)
        return size

    def upload(self, project: str, digest: str) -> Iterator[bytes]:
        with self._upload(project, digest).open("rb") as file:
            yield from _pieces(file)

    def whole_upload(self, project: str, digest: str, bytes_max: int) -> bytes:
        """The content of a complete upload of up to this size."""
        path = self._upload(project, digest)
        if not path.exists():
            raise Conflict("The file is not uploaded", hint="Upload it first")
        if path.stat().st_size > bytes_max:
            raise BadInput(f"The file has more than {bytes_text(bytes_max)}", hint="Upload a smaller one")
        return path.read_bytes()

    def remove_uploads(self, before: float, used: Iterable[tuple[str, str]]) -> None:
        """Remove uploads that are older than a time and not used."""
        keep = {self._upload(project, digest) for project, digest in used}
        keep |= set(map(list_of, keep))
        for path in (self._folder / "uploads").glob("*/*"):
            if path not in keep and path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    def _check_room(self, path: Path, size_bytes: int) -> None:
        if not 0 < size_bytes <= UPLOAD_BYTES_MAX:
            raise Refused(
                f"The files of a run can have up to {bytes_text(UPLOAD_BYTES_MAX)}, not {bytes_text(size_bytes)}",
                hint="Exclude large files with `.teraignore`, and download data in the command",
            )
        others = [
            each
            for each in path.parent.glob("*")
            if each != receiving.part_of(path) and not each.name.endswith(LISTED)
        ]
        if len(others) >= UPLOADS_MAX:
            raise Refused(
                f"The project already stores {UPLOADS_MAX:,} files for runs",
                hint="Unused files are removed after a week",
            )
        held = sum(map(_size, others))
        if held + size_bytes > PROJECT_BYTES_MAX:
            raise Refused(
                f"The project already stores {bytes_text(held)} of files for runs",
                hint="Unused files are removed after a week",
            )

    def _upload(self, project: str, digest: str) -> Path:
        if not DIGEST.fullmatch(digest):
            raise BadInput("An upload is named by its SHA-256", hint="Use 64 lower-case hexadecimal digits")
        return self._folder / "uploads" / project / digest

    # logs

    def append_log(self, run: str, at: int, content: bytes, node: int = 0) -> int:
        """Write a piece of the log at an offset and return the new size. Repeating it changes nothing."""
        if not content or is_full(at):
            return at
        path = self._log(run, node)
        if at + len(content) > LOG_BYTES_MAX:
            content = content[: LOG_BYTES_MAX - at] + CUT
        with path.open("r+b" if path.exists() else "wb") as file:
            file.seek(at)
            file.write(content)
            file.truncate()
        return at + len(content)

    def log(self, run: str, offset: int, bytes_max: int, node: int = 0) -> bytes:
        path = self._log(run, node)
        if not path.exists():
            return b""
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(bytes_max)

    def _log(self, run: str, node: int) -> Path:
        return self._run(run) / (f"log-{node}" if node else "log")

    # tars

    def keep(self, run: str, name: str, pieces: Iterable[bytes]) -> tuple[int, str]:
        """Write a file completely or not at all. Return its size and its SHA-256."""
        counted = _Counted(pieces)
        if self._bucket is not None:
            self._bucket.put_stream(f"{run}/{name}", counted)
            return counted.size, counted.digest.hexdigest()
        path = self._run(run) / name
        new = path.with_name(f"{name}.new")
        try:
            with new.open("wb") as file:
                for piece in counted:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
        return counted.size, counted.digest.hexdigest()

    def tar(self, run: str, name: str) -> Iterator[bytes]:
        path = self._run(run) / name
        if path.exists():
            with path.open("rb") as file:
                yield from _pieces(file)
        elif self._bucket is not None:
            yield from self._bucket.get_stream(f"{run}/{name}")

    def intact(self, run: str, name: str, digest: str) -> Iterator[bytes]:
        """The content of a file. Raises `Damaged`, at the latest after the last piece, if its SHA-256 is another."""
        path, key = self._run(run) / name, f"{run}/{name}"
        if path.exists():
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                    raise Damaged(key)
        elif self._bucket is None or key not in self._bucket.sizes(key):
            raise Damaged(key)
        yield from checked(self.tar(run, name), digest)

    def remove(self, run: str, name: str) -> None:
        (self._run(run) / name).unlink(missing_ok=True)
        if self._bucket is not None:
            self._bucket.remove(f"{run}/{name}")

    def remove_run(self, run: str) -> None:
        shutil.rmtree(self._folder / "runs" / run, ignore_errors=True)
        if self._bucket is not None:
            self._bucket.remove(f"{run}/")

    def _run(self, run: str) -> Path:
        folder = self._folder / "runs" / run
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder


class _Counted:
    """Pieces of a content, counted while they are read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.size, self.digest = 0, hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.size += len(piece)
            self.digest.update(piece)
            yield piece


def checked(pieces: Iterable[bytes], digest: str) -> Iterator[bytes]:
    """The pieces. Raises `Damaged` after the last one if their SHA-256 is another."""
    counted = _Counted(pieces)
    yield from counted
    if counted.digest.hexdigest() != digest:
        raise Damaged(digest)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # it was completed or removed meanwhile
        return 0


def _pieces(file: object) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):  # type: ignore[attr-defined]
        yield piece
