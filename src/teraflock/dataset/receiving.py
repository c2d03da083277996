"""Receives a file in pieces. Its SHA-256 names it, so an interrupted upload continues and a damaged one is refused.

A file without `.part` is complete and on disk.
"""

import fcntl
import hashlib
import os
from pathlib import Path

from teraflock.base.errors import BadInput, Conflict


def received_bytes(path: Path) -> tuple[int, bool]:
    """How much of a file has arrived, and whether it is complete."""
    if path.exists():
        return path.stat().st_size, True
    part = part_of(path)
    return (part.stat().st_size if part.exists() else 0), False


def receive(path: Path, digest: str, offset: int, content: bytes, size_bytes: int) -> tuple[int, bool]:
    """Add a piece. The last piece completes the file, if its content has the digest."""
    if path.exists():
        return path.stat().st_size, True
    part = part_of(path)
    part.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with part.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # of two clients at once, the second continues after the first
        if file.seek(0, os.SEEK_END) != offset:
            return file.tell(), False  # the client continues there
        if offset + len(content) > size_bytes:
            raise BadInput("The upload is larger than announced", hint="Upload it again")
        file.write(content)
        file.flush()
        received = offset + len(content)
        if received == size_bytes:
            _complete(part, path, digest)
    return received, received == size_bytes


def part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _complete(part: Path, path: Path, digest: str) -> None:
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    if found != digest:
        part.unlink(missing_ok=True)
        raise Conflict("The upload does not have the announced content", hint="Upload it again")
    part.replace(path)
