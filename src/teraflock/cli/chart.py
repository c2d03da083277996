"""A chart for the terminal: one row per moment, drawn from its lowest to its highest value."""

from collections.abc import Sequence
from typing import Final

import msgspec

PLOT_CHARACTERS_MIN: Final = 12
PLOT_CHARACTERS_MAX: Final = 64


class Range(msgspec.Struct, frozen=True):
    label: str
    low: int
    middle: int
    high: int
    low_text: str
    high_text: str
    note: str


def ranges(rows: Sequence[Range], width: int) -> str:
    """`label  low ├──●───┤ high  note`, all on one scale from zero."""
    label, low = max(len(row.label) for row in rows), max(len(row.low_text) for row in rows)
    high, note = max(len(row.high_text) for row in rows), max(len(row.note) for row in rows)
    room = width - label - low - high - note - 8
    plot = max(PLOT_CHARACTERS_MIN, min(PLOT_CHARACTERS_MAX, room))
    top = max(row.high for row in rows) or 1
    lines = []
    for row in rows:
        low_at, middle_at, high_at = (value * (plot - 1) // top for value in (row.low, row.middle, row.high))
        bar = _bar(low_at, middle_at, high_at, plot)
        lines.append(
            f"{row.label:<{label}}  {row.low_text:>{low}}  {bar}  {row.high_text:>{high}}  {row.note:>{note}}".rstrip()
        )
    return "\n".join(lines)


def _bar(low: int, middle: int, high: int, plot: int) -> str:
    cells = [" "] * plot
    for place in range(low, high + 1):
        cells[place] = "─"
    cells[low], cells[high] = "├", "┤"
    cells[middle] = "●"
    return "".join(cells)
