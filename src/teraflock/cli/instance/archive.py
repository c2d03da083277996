"""Files of an instance that cannot be logged in to: fetched from the server as tar, and written here.

What holds, whatever the guest put into the archive: only plain files and folders are made, below the target and
nowhere else; no link is made, and none is followed below the target; a file is whole or not there.
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
"""Where relative paths begin, as for scp."""
PIECE_BYTES: Final = 1 << 20


def fetch(client: "Client", ref: str, sources: list[str], target: str, *, recursive: bool) -> None:
    """Copy paths of an instance to a path here."""
    to = Path(target)
    if (len(sources) > 1 or target.endswith("/")) and not to.is_dir():
        raise BadInput(f"`{target}` is no folder here", hint="Make it first, or copy one file")
    for source in sources:
        path = source if source.startswith("/") else f"{HOME}/{source}".rstrip("/")
        try:
            receive(client.instances.archive(ref, path), to, recursive=recursive)
        except (ReadError, NoAnswer) as error:
            raise Refused(
                f"The copy of `{path}` broke off: what is here is not complete",
                hint="It may hold more than 1 GB or 10,000 files: fetch parts of it, or start the instance first",
            ) from error


def receive(pieces: Iterator[bytes], to: Path, *, recursive: bool) -> None:
    """Write an archive with one entry at its top, as `cp` would name it."""
    with open_tar(fileobj=cast(IO[bytes], _Stream(pieces)), mode="r|") as archive:
        for number, member in enumerate(archive):
            parts = safe_parts(member.name)
            if number == 0:
                top = _top(member, parts, to, recursive=recursive)
            if not (member.isfile() or member.isdir()):
                remark(f"left out: `{member.name}` is neither a file nor a folder")
                continue
            _write(archive, member, top.joinpath(*parts[1:]), top)


def safe_parts(name: str) -> tuple[str, ...]:
    """The parts of a name in an archive; refused where it could lead anywhere else."""
    parts = tuple(name.split("/"))
    if any(part in ("", ".", "..") or "\0" in part or os.sep in part for part in parts):
        raise Refused(
            f"The archive names `{name[:80]}`, which is outside of the target",
            hint="Nothing was written there",
        )
    return parts


def _top(member: TarInfo, parts: tuple[str, ...], to: Path, *, recursive: bool) -> Path:
    if member.isdir() and not recursive:
        raise BadInput(f"`{parts[0]}` is a folder", hint="Add `-r` to copy it with all that is in it")
    return to / parts[0] if to.is_dir() else to


def _write(archive: TarFile, member: TarInfo, path: Path, top: Path) -> None:
    for folder in _between(top, path):
        if folder.is_symlink():
            raise Refused(
                f"`{folder}` is a link here: nothing is written through it", hint="Copy to another folder"
            )
    if member.isdir():
        if not path.is_dir() or path.is_symlink():
            path.mkdir()
        return
    content = archive.extractfile(member)
    assert content is not None, "a plain file has content"
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with open(os.open(beside, flags, member.mode & 0o777), "wb") as file:  # noqa: PTH123
            while piece := content.read(PIECE_BYTES):
                file.write(piece)
        beside.replace(path)  # a link that has its name is replaced, not followed
    finally:
        beside.unlink(missing_ok=True)


def _between(top: Path, path: Path) -> list[Path]:
    """The folders from the top of the archive down to a path, without the path itself."""
    below = path.relative_to(top).parts
    return [top.joinpath(*below[:count]) for count in range(len(below))]


class _Stream:
    """Pieces as a file that is read from its beginning to its end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def read(self, size: int) -> bytes:
        while len(self._left) < size and (piece := next(self._pieces, b"")):
            self._left += piece
        taken, self._left = self._left[:size], self._left[size:]
        return taken
