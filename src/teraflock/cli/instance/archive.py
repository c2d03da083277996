"""Files of an instance without SSH: the server sends a tar archive, and this module writes it to disk.

Invariants, whatever the guest put into the archive: only plain files and folders are created, and only below the
target; no link is created or followed below the target; a file is complete or absent.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tarfile import ReadError, TarFile, TarInfo
from tarfile import open as open_tar
from typing import IO, TYPE_CHECKING, Final, cast

from teraflock.base.errors import BadInput, Refused
from teraflock.cli.output import remark
from teraflock.client.errors import NoAnswer

if TYPE_CHECKING:
    from teraflock.client import Client

HOME: Final = "/root"
"""Relative paths start here, as for scp."""
PIECE_BYTES: Final = 1 << 20


def fetch(client: "Client", ref: str, sources: list[str], target: str, *, recursive: bool) -> None:
    """Copy paths of an instance to a path here."""
    to = Path(target)
    if (len(sources) > 1 or target.endswith("/")) and not to.is_dir():
        raise BadInput(
            f"`{target}` is not a folder on this machine", hint="Create it first, or copy a single file"
        )
    for source in sources:
        path = source if source.startswith("/") else f"{HOME}/{source}".rstrip("/")
        try:
            receive(client.instances.archive(ref, path), to, recursive=recursive)
        except (ReadError, NoAnswer) as error:
            raise Refused(
                f"Copying `{path}` was interrupted: the local copy is incomplete",
                hint="It may have more than 1 GB or 10,000 files: copy parts of it, or start the instance first",
            ) from error


def receive(pieces: Iterator[bytes], to: Path, *, recursive: bool) -> None:
    """Write an archive that has one top entry, named as `cp` would name it."""
    with open_tar(fileobj=cast(IO[bytes], _Stream(pieces)), mode="r|") as archive:
        for number, member in enumerate(archive):
            parts = safe_parts(member.name)
            if number == 0:
                top = _top(member, parts, to, recursive=recursive)
            if not (member.isfile() or member.isdir()):
                remark(f"Skipped `{member.name}`: neither a file nor a folder")
                continue
            _write(archive, member, top.joinpath(*parts[1:]), top)


def safe_parts(name: str) -> tuple[str, ...]:
    """The parts of a name in an archive. Names that could leave the target are refused."""
    parts = tuple(name.split("/"))
    if any(part in ("", ".", "..") or "\0" in part or os.sep in part for part in parts):
        raise Refused(
            f"The archive contains `{name[:80]}`, which is outside the target",
            hint="Nothing was written there",
        )
    return parts


def _top(member: TarInfo, parts: tuple[str, ...], to: Path, *, recursive: bool) -> Path:
    if member.isdir() and not recursive:
        raise BadInput(f"`{parts[0]}` is a folder", hint="Add `-r` to copy it with its contents")
    return to / parts[0] if to.is_dir() else to


def _write(archive: TarFile, member: TarInfo, path: Path, top: Path) -> None:
    for folder in _between(top, path):
        if folder.is_symlink():
            raise Refused(
                f"`{folder}` is a link on this machine, and links are not followed",
                hint="Copy to another folder",
            )
    if member.isdir():
        if not path.is_dir() or path.is_symlink():
            path.mkdir()
        return
    content = archive.extractfile(member)
    assert content is not None, "a plain file has contents"
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with open(os.open(beside, flags, member.mode & 0o777), "wb") as file:  # noqa: PTH123
            while piece := content.read(PIECE_BYTES):
                file.write(piece)
        beside.replace(path)  # replaces a link of that name; does not follow it
    finally:
        beside.unlink(missing_ok=True)


def _between(top: Path, path: Path) -> list[Path]:
    """The folders from the top of the archive down to a path, without the path itself."""
    below = path.relative_to(top).parts
    return [top.joinpath(*below[:count]) for count in range(len(below))]


class _Stream:
    """An iterator of bytes as a file that can be read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def read(self, size: int) -> bytes:
        while len(self._left) < size and (piece := next(self._pieces, b"")):
            self._left += piece
        taken, self._left = self._left[:size], self._left[size:]
        return taken
