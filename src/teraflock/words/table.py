"""Columns of a table with the text of their cells, shared by the terminal and the console."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Field(msgspec.Struct, Generic[T], frozen=True):
    title: str
    text: Callable[[T], str]
    right: bool = False
    """Align to the right, for numbers."""
    flexible: bool = False
    """May be shortened with `…`."""
    worth: int = 9
    """On a narrow terminal the column of least worth is dropped first; 9 is never dropped."""


Fields = tuple[Field[T], ...]


def cells(fields: Fields[T], item: T) -> list[str]:
    return [field.text(item) for field in fields]
