"""CSV as catalogs have it: a header, rows of one length, numbers that may be missing.

A file that breaks off within a row or a quote, or is no text at all, is `BrokenSource` as a whole: half a
catalog must never take the place of a whole one.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from teraflock.base.errors import BrokenSource
from teraflock.base.money import parse_micros

FIELD_CHARACTERS_MAX: Final = 100_000  # a longer cell means that a quote was left open


def read_table(path: Path, needed: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells by column name, row by row."""
    csv.field_size_limit(FIELD_CHARACTERS_MAX)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from _rows(path.name, map(_text, file), set(needed))
    except UnicodeDecodeError:
        raise BrokenSource(f"`{path.name}` is not text in UTF-8") from None
    except csv.Error as error:
        raise BrokenSource(
            f"`{path.name}` is no CSV that can be read: {error}",
            hint="The file may have been cut short; fetch it again",
        ) from None
    except OSError as error:
        raise BrokenSource(f"`{path}` cannot be read: {error.strerror}") from None


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
        raise BrokenSource(f"`{name}` has the column `{twice[0]}` twice", hint="Leave one of them")
    width = len(header)
    for cells in reader:
        if len(cells) == width:
            yield reader.line_num, dict(zip(header, cells, strict=True))
        elif cells:
            raise BrokenSource(
                f"`{name}`, line {reader.line_num}: {width} columns are needed, {len(cells)} are there",
                hint="The file may have been cut short; fetch it again",
            )


def _text(line: str) -> str:
    if "\0" in line:
        raise csv.Error("it holds a NUL character, which no text has")
    return line


def csv_files(path: Path) -> list[Path]:
    """The file itself, or the CSV files of a folder in the order of their names."""
    if path.is_file():
        return [path]
    files = sorted(path.glob("*.csv")) if path.is_dir() else []
    if not files:
        raise BrokenSource(
            f"`{path}` holds no CSV file" if path.is_dir() else f"`{path}` does not exist",
            hint="Name a CSV file, or the folder that holds them",
        )
    return files


def number(text: str) -> float | None:
    """A finite number, or `None` for an empty cell. Raises `ValueError` on anything else."""
    if not text:
        return None
    value = float(text)
    if not -1e15 < value < 1e15 or "_" in text:  # false for NaN too; Python would read `1_000`
        raise ValueError(f"not a usable number: {text!r}")
    return value


@lru_cache(maxsize=1 << 16)  # a catalog repeats a price for every zone
def amount(text: str) -> int | None:
    """Micro-units, or `None` for an empty cell. Raises `ValueError` on anything else."""
    if "_" in text:
        raise ValueError(f"not an amount: {text!r}")
    return parse_micros(text) if text else None
