"""Draws the memory over one step and the time per card as an SVG, without a library."""

from html import escape
from typing import Final

from teraflock.base.quantities import GIB
from teraflock.estimate.memory import Memory
from teraflock.estimate.model import Estimate, OnGpu
from teraflock.estimate.step import Seconds

WIDTH: Final = 900
HEIGHT: Final = 300
MARGIN: Final = 60
FONT: Final = 'font-family="sans-serif" font-size="12"'
BAR: Final = 16


def drawn(estimate: Estimate, memory: Memory) -> str:
    workload = estimate.workload
    title = f"{workload.model}, batch {workload.batch}, {workload.precision}, {workload.task}"
    timed = sorted(
        ((row, row.step_seconds) for row in estimate.gpus if row.step_seconds is not None),
        key=lambda each: each[1].p50,
    )
    height = MARGIN + HEIGHT + MARGIN + BAR * 1.4 * len(timed) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" {FONT}>',
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>',
        f'<text x="{MARGIN}" y="24" font-size="16">{escape(title)}</text>',
        *_timeline(memory),
        *_bars(timed, MARGIN + HEIGHT + MARGIN),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _timeline(memory: Memory) -> list[str]:
    top = max(memory.live_peak_bytes, 1)
    points = memory.timeline or [0]
    span = WIDTH - 2 * MARGIN
    base = MARGIN + HEIGHT

    def at(index: int, size: int) -> str:
        return (
            f"{MARGIN + span * index / max(1, len(points) - 1):.1f},{base - HEIGHT * 0.92 * size / top:.1f}"
        )

    line = " ".join(at(index, size) for index, size in enumerate(points))
    peak = base - HEIGHT * 0.92
    return [
        f'<polygon points="{MARGIN},{base} {line} {WIDTH - MARGIN},{base}" fill="#9ecae1"/>',
        f'<polyline points="{line}" fill="none" stroke="#08519c"/>',
        f'<line x1="{MARGIN}" y1="{peak:.1f}" x2="{WIDTH - MARGIN}" y2="{peak:.1f}" stroke="#a50f15"/>',
        f'<text x="{MARGIN}" y="{peak - 4:.1f}" fill="#a50f15">live peak {memory.live_peak_bytes / GIB:.2f} GiB</text>',
        f'<text x="{MARGIN - 6}" y="{base}" text-anchor="end">0</text>',
        f'<text x="{MARGIN}" y="{base + 16}">start of the step</text>',
        f'<text x="{WIDTH - MARGIN}" y="{base + 16}" text-anchor="end">end, after the optimizer</text>',
    ]


def _bars(timed: list[tuple[OnGpu, Seconds]], top: float) -> list[str]:
    if not timed:
        return []
    longest = max(seconds.p90 for _, seconds in timed)
    left, span = 190, WIDTH - 190 - MARGIN - 60
    caption = "seconds per step, p10 to p90; the number is p50" + (
        "; grey: does not fit" if any(not row.fits for row, _ in timed) else ""
    )
    parts = [f'<text x="{MARGIN}" y="{top - 10:.0f}" font-size="14">{caption}</text>']
    for place, (row, seconds) in enumerate(timed):
        y = top + place * BAR * 1.4
        start, middle, end = (
            left + span * value / longest for value in (seconds.p10, seconds.p50, seconds.p90)
        )
        label = row.gpu if row.fits else f"{row.gpu} (too small)"
        colour = "#31a354" if row.fits else "#bdbdbd"
        parts += [
            f'<text x="{left - 8}" y="{y + BAR * 0.8:.1f}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{start:.1f}" y="{y:.1f}" width="{max(end - start, 1):.1f}" height="{BAR}" fill="{colour}"/>',
            f'<line x1="{middle:.1f}" y1="{y:.1f}" x2="{middle:.1f}" y2="{y + BAR:.1f}" stroke="black"/>',
            f'<text x="{end + 6:.1f}" y="{y + BAR * 0.8:.1f}">{seconds.p50:.3g}</text>',
        ]
    return parts
