"""Pages of a list that the API sends whole, because a limit bounds it."""

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import msgspec

from teraflock.console.request import Form

T = TypeVar("T")
ROWS: Final = 100


class Sliced(msgspec.Struct, Generic[T], frozen=True):
    items: Sequence[T]
    after: str
    """How many items come before. Empty: none."""
    next: str | None


def sliced(items: Sequence[T], query: Form, rows: int = ROWS) -> Sliced[T]:
    """The part of a list that the address asks for. An address that makes no sense gets the beginning."""
    text = query.text("after")
    start = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    end = start + rows
    return Sliced(items[start:end], str(start or ""), str(end) if end < len(items) else None)
