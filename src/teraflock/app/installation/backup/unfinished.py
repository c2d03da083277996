"""The last part of a restore: move staged files to their places. It is completed even after a crash.

Imports little, because every start of a server checks whether there is a restore to complete.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from teraflock.app.files import sync_folder
from teraflock.app.installation.places import Places

STAGING: Final = "restoring"
NOTE: Final = "restore.json"
REPLACED: Final = "replaced"
LOGS: Final = ("-wal", "-shm")
"""Files that SQLite keeps next to a database. They belong to the old one."""

Reach = Callable[[str], None]


class Move(msgspec.Struct, frozen=True, kw_only=True):
    staged: str
    target: str


def finish_interrupted(places: Places, reach: Reach = lambda point: None) -> None:
    """Move the files of a restore that wrote its note. Without a note, remove what was staged."""
    note, staging = places.cloud / NOTE, places.cloud / STAGING
    if note.exists():
        replaced = places.cloud / REPLACED
        replaced.mkdir(exist_ok=True, mode=0o700)
        for move in msgspec.json.decode(note.read_bytes(), type=list[Move]):
            _move(Path(move.staged), Path(move.target), replaced)
            reach(f"moved {Path(move.target).name}")
        note.unlink()
        sync_folder(places.cloud)
    if staging.exists():
        shutil.rmtree(staging)


def _move(staged: Path, target: Path, replaced: Path) -> None:
    """Can be repeated: a file that was moved is no longer staged."""
    if not staged.exists():
        return
    old = [target, *(target.with_name(target.name + suffix) for suffix in LOGS)]
    for path in old:
        if path.exists():
            if path.is_dir():  # of an earlier restore; a folder would be moved into it
                shutil.rmtree(replaced / path.name, ignore_errors=True)
            shutil.move(path, replaced / path.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    staged.replace(target)
    sync_folder(target.parent)
