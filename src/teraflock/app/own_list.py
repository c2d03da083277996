"""A list that the user keeps as a small JSON file in the home folder, such as own hosts and own cards."""

import os
from typing import TypeVar

import msgspec

from teraflock.base.errors import BrokenSource

T = TypeVar("T")


def read_list(path: str, kind: type[T], what: str) -> list[T]:
    """Empty if there is no file. `what` names the content in the error message."""
    if not os.path.exists(path):  # noqa: PTH110 -- see home.py
        return []
    with open(path, "rb") as file:  # noqa: PTH123
        content = file.read()
    try:
        return msgspec.json.decode(content, type=list[kind])  # type: ignore[valid-type]
    except msgspec.MsgspecError as error:
        raise BrokenSource(f"Could not read {what} in `{path}`: {error}") from None


def write_list(path: str, items: list[T]) -> None:
    from pathlib import Path

    from teraflock.app.files import put  # plans and estimates only read, and need no pathlib

    put(Path(path), msgspec.json.format(msgspec.json.encode(items), indent=2) + b"\n")
