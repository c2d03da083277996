"""Atomic writes of small files: a reader sees the old content or the new content, never a part."""

import os
from pathlib import Path


def put(target: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a new file and rename it to the target. Creates the folder if it is missing. Use mode 0o600 for secrets."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(f".{os.getpid()}.new")
    try:
        temporary.unlink(missing_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:  # noqa: PTH123
            file.write(content)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in the folder durable. Without it, a crash can undo them."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
