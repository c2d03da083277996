"""The files of a run: a folder as a tar that is the same for the same content, so that it is uploaded once."""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from teraflock.base.errors import BadInput
from teraflock.base.quantities import bytes_text
from teraflock.cli.run.ignoring import IGNORE_FILES, Pattern, is_ignored, patterns_of, sorted_names

BYTES_MAX: Final = 256 << 20
FILES_MAX: Final = 20_000
PIECE_FILES: Final = 16  # small files share a piece with this many others
PIECE_BYTES: Final = 256 << 10
PIECE_BYTES_MAX: Final = 4 << 20


class Packed(NamedTuple):
    digest: str
    content: bytes
    files: int
    skipped: int
    """Links and other things that are no plain files."""
    pieces: tuple[int, ...] = ()
    """The sizes of the pieces that are sent again only if they change."""
    folder: str = ""


def pack(folder: Path) -> Packed:
    """Pack a folder. Times and owners are left out, so that the digest depends on the content only."""
    check_folder(folder)
    buffer, files, skipped = io.BytesIO(), 0, 0
    ends: list[int] = []
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, name in _walked(folder):
            if path.is_symlink() or not path.is_file():
                skipped += 1
                continue
            files += 1
            content = _content(folder, path, BYTES_MAX - buffer.tell())
            if files > FILES_MAX:
                raise _too_much(folder)
            archive.addfile(_head(name, path, len(content)), io.BytesIO(content))
            if _is_end(name, buffer.tell() - (ends[-1] if ends else 0)):
                ends.append(buffer.tell())
    packed = buffer.getvalue()
    pieces = _sizes([*ends, len(packed)])
    return Packed(hashlib.sha256(packed).hexdigest(), packed, files, skipped, pieces, str(folder))


def _is_end(name: str, size_bytes: int) -> bool:
    """Whether a piece ends after this file. It depends on names, so that a new file changes only the piece it is in."""
    return size_bytes >= PIECE_BYTES or hashlib.sha256(os.fsencode(name)).digest()[0] < 256 // PIECE_FILES


def _sizes(ends: Sequence[int]) -> tuple[int, ...]:
    """The sizes of pieces between some offsets. Large files are split."""
    found: list[int] = []
    for start, end in pairwise((0, *ends)):
        whole, rest = divmod(end - start, PIECE_BYTES_MAX)
        found += [PIECE_BYTES_MAX] * whole + ([rest] if rest else [])
    return tuple(found)


def _walked(folder: Path) -> Iterator[tuple[Path, str]]:
    try:
        yield from walk(folder)
    except OSError as error:
        raise _unreadable(Path(error.filename or folder), error) from None
    except RecursionError:
        raise BadInput(
            f"The folders in `{folder}` are nested too deeply", hint="List them in `.teraignore`"
        ) from None


def _content(folder: Path, path: Path, bytes_left: int) -> bytes:
    """The content of a file. One that is too large is not read: it may be larger than the memory."""
    try:
        if path.stat().st_size > bytes_left:
            raise _too_much(folder)
        with path.open("rb") as file:
            content = file.read(max(0, bytes_left) + 1)  # it may grow meanwhile
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(content) > bytes_left:
        raise _too_much(folder)
    return content


def _too_much(folder: Path) -> BadInput:
    return BadInput(
        f"`{folder}` has more than {bytes_text(BYTES_MAX)} or {FILES_MAX:,} files",
        hint="List what the command does not need in `.teraignore`, or choose another `--workdir`",
    )


def _unreadable(path: Path, error: OSError) -> BadInput:
    return BadInput(
        f"`{path}` cannot be read: {error.strerror or 'unknown reason'}",
        hint="Change its permissions, or list it in `.teraignore`",
    )


def walk(folder: Path, below: str = "", patterns: tuple[Pattern, ...] = ()) -> Iterator[tuple[Path, str]]:
    """The files that belong to a run, with their names, in a fixed order."""
    at = folder / below if below else folder
    for name in IGNORE_FILES:
        if (at / name).is_file():
            text = (at / name).read_text("utf-8", "replace")
            patterns = (*patterns, *patterns_of(text, below))
    for name in sorted_names(os.listdir(at)):  # noqa: PTH208  # names as they are, for a fixed order
        inner = f"{below}/{name}" if below else name
        path = folder / inner
        is_folder = path.is_dir() and not path.is_symlink()
        if is_ignored(inner, is_folder, patterns):
            continue
        if is_folder:
            yield from walk(folder, inner, patterns)
        else:
            yield path, inner


def check_folder(folder: Path) -> None:
    try:
        is_folder = folder.is_dir()
    except (OSError, ValueError):  # its name is too long, or contains a NUL character
        is_folder = False
    if not is_folder:
        raise BadInput(f"`{folder}` is not a folder", hint="Name a folder with `--workdir`")
    if folder.resolve() in (Path.home().resolve(), Path("/")):
        raise BadInput(
            f"`{folder}` is your home folder or the root of the disk, and all of it would be uploaded",
            hint="Change to the folder of your project, or name one with `--workdir`",
        )


def _head(name: str, path: Path, size: int) -> tarfile.TarInfo:
    head = tarfile.TarInfo(name)
    head.size = size
    head.mode = 0o755 if os.access(path, os.X_OK) else 0o644
    return head
