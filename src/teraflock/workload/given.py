"""Model files that came with a request instead of from a disk: a `config.json` or a recorded trace.

A planner process handles one request at a time, so only the file of the current request is kept. Its name contains a
digest of its content, so that nothing that is cached by name is used for another file.
"""

from typing import Final

CONFIG: Final = ".json"
TRACE: Final = ".trace"
_current: dict[str, bytes] = {}


def give(content: bytes, ending: str) -> str:
    """Keep a file until the next one, and return the name of its model."""
    from hashlib import (
        sha256,
    )  # imported here because only servers need it, and it would slow down every start

    name = f"uploaded-{sha256(content).hexdigest()[:12]}{ending}"
    _current.clear()
    _current[name] = content
    return name


def given(name: str) -> bytes | None:
    """The content of an uploaded file. None: the name means a file on disk."""
    return _current.get(name)
