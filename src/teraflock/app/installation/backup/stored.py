"""The files of runs and datasets in a backup: each is one part, under `files/`.

Uploads in progress are left out. So is everything beyond a bound on their number; the backup says so.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from teraflock.app.installation.backup.archive import PIECE_BYTES, Reader, Writer
from teraflock.base.errors import BrokenSource

FOLDERS: Final = ("runs", "datasets")
PREFIX: Final = "files/"
FILES_MAX: Final = 50_000
"""The manifest of a backup lists every part."""
UNFINISHED: Final = (".part", ".new")


def add_stored(writer: Writer, cloud: Path) -> tuple[str, ...]:
    """Add the files of runs and datasets. Return what was left out."""
    left_out: list[str] = []
    for folder in FOLDERS:
        found = [each for each in sorted((cloud / folder).rglob("*")) if _is_whole(each)]
        for path in found[:FILES_MAX]:
            writer.add(f"{PREFIX}{path.relative_to(cloud).as_posix()}", _pieces(path), packed=False)
        if len(found) > FILES_MAX:
            left_out.append(f"{len(found) - FILES_MAX:,} files in `{folder}`: more than a backup can have")
    return tuple(left_out)


def stage_stored(reader: Reader, staged: Path) -> None:
    """Write the files of a backup below the folder of the new installation."""
    for name in reader.manifest.parts:
        if not name.startswith(PREFIX):
            continue
        path = PurePosixPath(name.removeprefix(PREFIX))
        if path.is_absolute() or ".." in path.parts or path.parts[0] not in FOLDERS:
            raise BrokenSource(f"The backup has a file with a forbidden name: `{name[:80]}`")
        target = staged / path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        reader.save(name, target)


def _is_whole(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and not path.name.endswith(UNFINISHED)


def _pieces(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
    except FileNotFoundError:  # removed since it was listed: its row says that it is gone
        return
