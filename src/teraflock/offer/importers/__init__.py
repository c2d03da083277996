"""Readers of catalogs: one file for each layout, each yielding `Row` or `Rejected` line by line.

A reader knows what the columns of its layout mean and which faults that layout is known for. It does not judge
prices and cards: `offer/intake.py` does, for all alike. To add a layout, write a file with a `read` like the
others and name it in `READERS`.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

from teraflock.offer.intake import Rejected, Row

Reader = Callable[[Path, Callable[[], None]], Iterator[Row | Rejected]]
"""Reads a file or folder, calling back for each row of it: an offer may be made of several, or of half of one."""

READERS: Final[dict[str, str]] = {
    "skypilot": "teraflock.offer.importers.skypilot",
    "gpuhunt": "teraflock.offer.importers.gpuhunt",
    "teraflock": "teraflock.offer.importers.own",
}


def reader(layout: str) -> Reader:
    """The `read` of one layout; loaded only now, since most commands import nothing."""
    read: Reader = import_module(READERS[layout]).read
    return read
