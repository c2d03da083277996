"""A line chart as SVG: a title, two axes, and a line with a label for each series."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final
from xml.sax.saxutils import escape

import msgspec

WIDTH: Final = 720
HEIGHT: Final = 420
LEFT: Final = 80
RIGHT: Final = 190
TOP: Final = 60
BOTTOM: Final = 50
COLOURS: Final = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a")
DASHES: Final = ("", "6 3", "2 3", "10 4", "8 3 2 3", "1 4")
TICKS: Final = 5


class Series(msgspec.Struct, frozen=True):
    label: str
    points: tuple[tuple[float, float], ...]


def line_chart(title: str, across: str, up: str, series: Sequence[Series]) -> str:
    """Both axes start at zero. Lines differ in dashes as well as in colour."""
    across_max = max((x for each in series for x, _ in each.points), default=1.0) or 1.0
    up_max = max((y for each in series for _, y in each.points), default=1.0) or 1.0

    def place(x: float, y: float) -> str:
        at_x = LEFT + (WIDTH - LEFT - RIGHT) * x / across_max
        at_y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / up_max
        return f"{at_x:.1f},{at_y:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(across)}</text>',
        f'<text x="14" y="{TOP - 14}">{escape(up)}</text>',
    ]
    for tick in range(TICKS + 1):
        x, y = across_max * tick / TICKS, up_max * tick / TICKS
        low, high = place(x, 0).split(","), place(0, y).split(",")
        parts.append(f'<text x="{low[0]}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
        parts.append(f'<text x="{LEFT - 8}" y="{float(high[1]) + 4:.1f}" text-anchor="end">{y:,.0f}</text>')
        parts.append(
            f'<polyline points="{place(0, y)} {place(across_max, y)}" stroke="#d0d7de" fill="none"/>'
        )
    label_at = _apart([float(place(*each.points[-1]).split(",")[1]) for each in series if each.points])
    for i, each in enumerate(series):
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)]
        line = " ".join(place(x, y) for x, y in each.points)
        parts.append(
            f'<polyline points="{line}" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}" fill="none"/>'
        )
        parts.append(
            f'<text x="{WIDTH - RIGHT + 8}" y="{label_at[i] + 4:.1f}" fill="{colour}">{escape(each.label)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _apart(heights: list[float], gap: float = 15.0) -> list[float]:
    """Move overlapping labels apart, keeping their order."""
    moved = list(heights)
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + gap)
    return moved
