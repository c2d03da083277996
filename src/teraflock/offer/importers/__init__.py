"""Readers of catalogs: one module per layout. Each yields a `Row` or `Rejected` per line.

A reader knows the columns of its layout and its known faults. It does not judge prices and cards; `offer/intake.py`
does this for all layouts. To add a layout, write a module with a `read` function and add it to `READERS`.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

from teraflock.offer.dates import DayOf
from teraflock.offer.intake import Rejected, Row

Reader = Callable[[Path, Callable[[], None], DayOf], Iterator[Row | Rejected]]
"""Reads a file or folder, calls back for each row, and asks for the date of each file. A row may give several offers,
and an offer may need several rows."""

READERS: Final[dict[str, str]] = {
    "skypilot": "teraflock.offer.importers.skypilot",
    "gpuhunt": "teraflock.offer.importers.gpuhunt",
    "teraflock": "teraflock.offer.importers.own",
}


def reader(layout: str) -> Reader:
    """Load the `read` function of a layout."""
    read: Reader = import_module(READERS[layout]).read
    return read
