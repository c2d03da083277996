"""Writing the user's small files whole: a reader sees the old one or the new one, never half of one."""

import os
from pathlib import Path


def put(target: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write beside the target and move over it; its folder is made if it is not there. A secret's mode is 0o600."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(f".{os.getpid()}.new")
    try:
        beside.unlink(missing_ok=True)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:  # noqa: PTH123
            file.write(content)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Until then a crash may undo a rename in it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
