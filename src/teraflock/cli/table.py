"""Tables that line up and fit the terminal.

A table that is too wide first shortens its flexible columns, then drops the columns of least worth. Columns of worth 9
are never dropped. Wide characters (中文) count as two.
"""

from collections.abc import Sequence
from typing import Final, TypeVar
from unicodedata import east_asian_width

import click
import msgspec

from teraflock.cli.output import columns as terminal_columns
from teraflock.cli.output import emphasised, remark, write_json
from teraflock.words.table import Fields, cells

T = TypeVar("T")

GAP: Final = "  "
SHORTEST: Final = 14
BAREST: Final = 4  # the shortest a text is cut to if the terminal is too narrow for everything else


KEPT_AT_START: Final = 2  # characters of a text that keeps its end


class Column(msgspec.Struct, frozen=True):
    title: str
    right: bool = False
    """Align to the right, for numbers."""
    flexible: bool = False
    """May be shortened with `…`."""
    worth: int = 9
    """On a narrow terminal the column of least worth is dropped first; 9 is never dropped."""
    shortest: int = SHORTEST
    """A flexible column is not cut below this while another can be dropped."""
    middle: bool = False
    """Whether texts keep their end when they are shortened, for names that differ there."""


def write_list(items: Sequence[T], fields: Fields[T], *, as_json: bool, empty: str = "") -> None:
    """Print items as JSON or as a table. `empty` is printed in place of a table without rows."""
    if as_json:
        write_json(items)
    elif items or not empty:
        write_table(fields, items)
    else:
        remark(empty)


def write_table(fields: Fields[T], items: Sequence[T]) -> None:
    columns = [Column(each.title, each.right, each.flexible, each.worth) for each in fields]
    write_rows(columns, [cells(fields, item) for item in items])


def write_rows(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of ready cells, and say on stderr which columns the terminal has no room for."""
    width = terminal_columns()
    click.echo(render(columns, rows, width))
    if hidden := dropped(columns, rows, width):
        remark(f"Columns not shown: {', '.join(hidden)}. Use a wider terminal, or `--json`")


def dropped(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The titles of columns with content that do not fit."""
    kept = _columns_that_fit(columns, rows, width)
    hidden = (each.title for i, each in enumerate(columns) if i not in kept and any(row[i] for row in rows))
    return list(dict.fromkeys(title for title in hidden if title))


def render(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> str:
    """The table as text, without a final line break."""
    rows = [[printable(cell) for cell in row] for row in rows]
    kept = _columns_that_fit(columns, rows, width)
    widths = [_natural(columns[i], rows, i) for i in kept]
    _shorten([columns[i] for i in kept], widths, width)
    lines = [emphasised(_line([columns[i].title for i in kept], [columns[i] for i in kept], widths))]
    lines += [_line([row[i] for i in kept], [columns[i] for i in kept], widths) for row in rows]
    return "\n".join(lines)


def _columns_that_fit(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    # leave out empty columns
    kept = [i for i, column in enumerate(columns) if column.worth == 9 or any(row[i] for row in rows)]

    def least(i: int) -> int:
        natural = _natural(columns[i], rows, i)
        return min(natural, columns[i].shortest) if columns[i].flexible else natural

    while sum(least(i) for i in kept) + len(GAP) * (len(kept) - 1) > width:
        droppable = [i for i in kept if columns[i].worth < 9]
        if not droppable:
            break
        kept.remove(min(droppable, key=lambda i: (columns[i].worth, -i)))
    return kept


def _shorten(columns: Sequence[Column], widths: list[int], width: int) -> None:
    """Shorten the widest column by one character at a time: flexible columns first, numbers never."""
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    for least, may in (
        (lambda column: column.shortest, lambda column: column.flexible),
        (lambda column: BAREST, lambda column: column.flexible),
        (lambda column: BAREST, lambda column: not column.right),
    ):
        while excess > 0:
            wide = [i for i, column in enumerate(columns) if may(column) and widths[i] > least(column)]
            if not wide:
                break
            widths[max(wide, key=lambda i: widths[i])] -= 1
            excess -= 1


def _natural(column: Column, rows: Sequence[Sequence[str]], i: int) -> int:
    return max([display_width(column.title), *(display_width(row[i]) for row in rows)])


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    padded = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        text = shortened(cell, width, middle=column.middle)
        space = " " * (width - display_width(text))
        padded.append(space + text if column.right else text + space)
    return GAP.join(padded).rstrip()


def printable(text: str) -> str:
    """Remove line breaks and terminal escapes, which text from outside may contain."""
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)


def shortened(text: str, width: int, *, middle: bool = False) -> str:
    if display_width(text) <= width:
        return text
    first = max(KEPT_AT_START, (width - 1) // 6)
    end = _start(text[::-1], width - 1 - first)[::-1] if middle and width > first + 1 else ""
    return _start(text, width - 1 - display_width(end)).rstrip() + "…" + end


def _start(text: str, width: int) -> str:
    """The characters at the start of a text that fit."""
    kept = ""
    for character in text:
        if display_width(kept + character) > width:
            break
        kept += character
    return kept


def display_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
