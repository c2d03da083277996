"""Figures and their output: one aligned table per benchmark, or JSON.

A figure keeps all its samples. The verdict compares the median with the target. If only the best sample meets the
target, the verdict says so: the machine was probably busy, and the benchmark should be repeated.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any, Final, Literal

import msgspec

Unit = Literal[
    "ms", "s", "kB", "MB", "rows", "rows/s", "requests/s", "launches", "launches/s", "placements/s", "×", "%"
]

DECIMALS: Final[dict[Unit, int]] = {
    "ms": 1,
    "s": 2,
    "kB": 1,
    "MB": 1,
    "rows": 0,
    "rows/s": 0,
    "requests/s": 0,
    "launches": 0,
    "launches/s": 1,
    "placements/s": 0,
    "×": 1,
    "%": 2,
}
FINE_MS: Final = 10.0  # below this, show more digits than a tenth of a millisecond

HEADER: Final = ("", "MEDIAN", "MIN", "N", "TARGET", "RATIO", "")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    unit: Unit
    samples: tuple[float, ...]
    bar: float | None = None
    at_least: bool = False
    """Whether the target is a minimum, as for "20 times faster", and not a maximum."""

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def ratio(self) -> float | None:
        return self.median / self.bar if self.bar else None

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return ""
        if self._keeps(self.median):
            return "within"
        missed = "under" if self.at_least else "over"
        return f"{missed}, best within" if any(map(self._keeps, self.samples)) else missed

    def _keeps(self, value: float) -> bool:
        assert self.bar is not None
        return value >= self.bar if self.at_least else value <= self.bar


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A group of figures. `notes` say how they were measured, or why there are none."""

    title: str
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()


def render(sections: Sequence[Section]) -> str:
    """Render all sections with aligned columns."""
    rows = [[_cells(figure) for figure in section.figures] for section in sections]
    every = [HEADER, *(cells for of_section in rows for cells in of_section)]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    return "\n".join(_lines(sections, rows, widths))


def plain(sections: Iterable[Section]) -> list[dict[str, Any]]:
    """Return the figures for JSON, without their samples."""
    return [
        {
            "title": section.title,
            "notes": section.notes,
            "figures": [
                {
                    "what": figure.what,
                    "unit": figure.unit,
                    "median": figure.median,
                    "min": min(figure.samples),
                    "max": max(figure.samples),
                    "samples": len(figure.samples),
                    "bar": figure.bar,
                    "bar_is": "at least" if figure.at_least else "at most",
                    "ratio": figure.ratio,
                    "verdict": figure.verdict,
                }
                for figure in section.figures
            ],
        }
        for section in sections
    ]


def milliseconds(seconds: Sequence[float]) -> tuple[float, ...]:
    return tuple(value * 1000 for value in seconds)


def _lines(
    sections: Sequence[Section], rows: Sequence[Sequence[Sequence[str]]], widths: Sequence[int]
) -> Iterator[str]:
    yield _line(HEADER, widths)
    for section, of_section in zip(sections, rows, strict=True):
        yield section.title
        yield from (_line(cells, widths) for cells in of_section)
        yield from (f"    {note}" for note in section.notes)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *numbers, last = cells
    middle = (number.rjust(width) for number, width in zip(numbers, widths[1:-1], strict=True))
    return "  ".join([f"  {first.ljust(widths[0])}", *middle, last]).rstrip()


def _cells(figure: Figure) -> tuple[str, ...]:
    bar = ratio = ""
    if figure.bar is not None:
        bar = f"{'≥' if figure.at_least else '≤'} {figure.bar:,g} {figure.unit}"
    if figure.ratio is not None:
        ratio = f"{figure.ratio:.2f}"
    return (
        figure.what,
        _amount(figure.median, figure.unit),
        _amount(min(figure.samples), figure.unit),
        f"{len(figure.samples):,}",
        bar,
        ratio,
        figure.verdict,
    )


def _amount(value: float, unit: Unit) -> str:
    decimals = 3 if unit == "ms" and value < FINE_MS else DECIMALS[unit]
    return f"{value:,.{decimals}f} {unit}"
