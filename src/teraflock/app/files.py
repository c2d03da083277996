"""Writing the user's small files whole: a reader sees the old one or the new one, never half of one."""

import os
from pathlib import Path


def put(target: Path, content: bytes) -> None:
    """Write beside the target and move over it; its folder is made if it is not there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(f".{os.getpid()}.new")
    try:
        beside.write_bytes(content)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
