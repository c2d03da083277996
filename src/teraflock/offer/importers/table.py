"""Read CSV files of catalogs: a header, rows of equal length, numbers that may be missing.

A file that ends within a row or a quote, or is not text, raises `BrokenSource`: an incomplete catalog must never
replace a complete one.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from teraflock.base.errors import BrokenSource
from teraflock.base.money import parse_micros

FIELD_CHARACTERS_MAX: Final = 100_000  # a longer cell means an unclosed quote


def read_table(path: Path, needed: Iterable[str], name: str = "") -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells by column name for each row. Errors call the file by `name`."""
    name = name or path.name
    csv.field_size_limit(FIELD_CHARACTERS_MAX)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from _rows(name, map(_text, file), set(needed))
    except UnicodeDecodeError:
        raise BrokenSource(f"`{name}` is not UTF-8 text") from None
    except csv.Error as error:
        raise BrokenSource(
            f"`{name}` is not a valid CSV file: {error}",
            hint="The file may be incomplete; download it again",
        ) from None
    except OSError as error:
        raise BrokenSource(f"Cannot read `{path}`: {error.strerror}") from None


def _rows(name: str, file: Iterable[str], needed: set[str]) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader(file, strict=True)
    header = next(reader, None)
    if not header:
        raise BrokenSource(f"`{name}` is empty")
    if missing := needed - set(header):
        raise BrokenSource(
            f"`{name}` has no column {', '.join(f'`{column}`' for column in sorted(missing))}",
            hint=f"Its columns are: {', '.join(header)[:200]}",
        )
    if twice := [column for column, times in Counter(header).items() if column and times > 1]:
        raise BrokenSource(f"`{name}` has the column `{twice[0]}` twice", hint="Remove one of them")
    width = len(header)
    for cells in reader:
        if len(cells) == width:
            yield reader.line_num, dict(zip(header, cells, strict=True))
        elif cells:
            raise BrokenSource(
                f"`{name}`, line {reader.line_num}: expected {width} columns, found {len(cells)}",
                hint="The file may be incomplete; download it again",
            )


def _text(line: str) -> str:
    if "\0" in line:
        raise csv.Error("it contains a NUL character")
    return line


def csv_files(path: Path) -> list[Path]:
    """Return the file itself, or the CSV files of a folder, sorted by name."""
    if path.is_file():
        return [path]
    files = sorted(path.glob("*.csv")) if path.is_dir() else []
    if not files:
        raise BrokenSource(
            f"`{path}` contains no CSV files" if path.is_dir() else f"`{path}` does not exist",
            hint="Give a CSV file, or a folder with CSV files",
        )
    return files


def number(text: str) -> float | None:
    """Parse a finite number. An empty cell is `None`. Raises `ValueError` for anything else."""
    if not text:
        return None
    value = float(text)
    if not -1e15 < value < 1e15 or "_" in text:  # also rejects NaN, and `1_000`, which Python accepts
        raise ValueError(f"not a usable number: {text!r}")
    return value


@lru_cache(maxsize=1 << 16)  # catalogs repeat prices for every zone
def amount(text: str) -> int | None:
    """Parse an amount into micro-units. An empty cell is `None`. Raises `ValueError` for anything else."""
    if "_" in text:
        raise ValueError(f"not an amount: {text!r}")
    return parse_micros(text) if text else None
