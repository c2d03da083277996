"""Files of a guest as a tar stream. All input comes from a guest, so nothing is trusted.

Invariants:
- the archive has only regular files and folders: no links, devices or owners, and no names outside its folder;
- bytes, entries and depth are limited, whatever the guest reports about its files;
- what cannot be archived at all is refused before the first byte. A limit that is reached later ends the stream.
"""

import tarfile
from collections.abc import Callable, Container, Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import Final

from teraflock.base.errors import BadInput, NotFound, Refused
from teraflock.base.quantities import bytes_text
from teraflock.instance.driver import FileKind, GuestFile
from teraflock.instance.engine_errors import EngineMissing

BYTES_MAX: Final = 1 << 30
ENTRIES_MAX: Final = 10_000
DEPTH_MAX: Final = 64
END: Final = bytes(2 * tarfile.BLOCKSIZE)

OpenFile = Callable[[str], AbstractContextManager[GuestFile]]


class TooLarge(Refused):
    """Files exceed a limit. To read them again would not help."""


class _Room:
    """What may still be added to the archive."""

    def __init__(self, bytes_max: int, left_out: Container[str]) -> None:
        self.left_out = left_out
        self.bytes_max = bytes_max
        self.bytes_left = bytes_max
        self.entries_left = ENTRIES_MAX

    def take(self, size_bytes: int) -> None:
        self.bytes_left -= size_bytes
        self.entries_left -= 1
        if self.bytes_left < 0:
            raise TooLarge(
                f"The files have more than {bytes_text(self.bytes_max)}, the most that can be fetched at once",
                hint="Fetch parts of it, or start the instance and run `tera cp` again",
            )
        if self.entries_left < 0:
            raise TooLarge(
                f"The folder has more than {ENTRIES_MAX:,} files, the most that can be fetched at once",
                hint="Fetch parts of the folder, or pack it into one file",
            )


def checked_path(path: str) -> str:
    """An absolute path without `.` and `..`."""
    pure = PurePosixPath(path)
    if not pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise BadInput(
            f"`{path[:80]}` is not an absolute path without `..`",
            hint="Write it like `/root/model.pt`",
        )
    return "/" + str(pure).lstrip("/")  # POSIX gives two leading slashes a meaning of their own


def archive(
    open_file: OpenFile, path: str, *, bytes_max: int = BYTES_MAX, left_out: Container[str] = ()
) -> Generator[bytes, None, None]:
    """A file, or a folder with its contents, as a tar stream. `left_out` are paths that are not opened."""
    path, room = checked_path(path), _Room(bytes_max, left_out)
    try:
        with open_file(path) as found:
            if found.kind == FileKind.LINK:
                raise BadInput(f"`{path}` is a link", hint="Use the path that it points to")
            yield from _entry(open_file, path, PurePosixPath(path).name or "root", found, room, 0)
    except EngineMissing:
        raise NotFound(
            f"There is no `{path[:80]}` in the instance", hint="Use a path on the instance's disk"
        ) from None
    yield END


def _entry(
    open_file: OpenFile, path: str, name: str, found: GuestFile, room: _Room, depth: int
) -> Iterator[bytes]:
    room.take(found.size_bytes if found.kind == FileKind.FILE else 0)
    yield header(name, found)
    if found.kind == FileKind.FILE:
        yield from _padded(found)
    for child in found.names if depth < DEPTH_MAX else ():
        there = f"{path.rstrip('/')}/{child}"
        if not is_plain_name(child) or there in room.left_out:
            continue
        try:
            with open_file(there) as below:
                if below.kind != FileKind.LINK:
                    yield from _entry(open_file, there, f"{name}/{child}", below, room, depth + 1)
        except EngineMissing:
            continue  # removed since its folder was read


def is_plain_name(name: str) -> bool:
    """Whether it is the name of an entry in its folder, not a path."""
    return bool(name) and name not in (".", "..") and "/" not in name and "\0" not in name


def header(name: str, found: GuestFile) -> bytes:
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE if found.kind == FileKind.FOLDER else tarfile.REGTYPE
    info.size = found.size_bytes if found.kind == FileKind.FILE else 0
    info.mode = found.mode & 0o777
    return info.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")


def _padded(found: GuestFile) -> Iterator[bytes]:
    """The content with exactly the size from the header, filled to a whole block."""
    left = found.size_bytes
    for piece in filter(None, found.content or ()):
        if not left:
            break
        yield piece[:left]
        left -= min(left, len(piece))
    if left:
        raise Refused("A file became shorter while it was read", hint="Fetch it again")
    if rest := -found.size_bytes % tarfile.BLOCKSIZE:  # an empty piece would be the end of the stream
        yield bytes(rest)
