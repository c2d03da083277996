"""Fits convolutions in plain fp32: `python -m lab.fit_plain` writes to estimate/data/cards.json.

GPUs without TF32 run other kernels than an H200 does by default. Their curve (`estimate/reach.py`) comes from public
latencies, which have forward passes only, and no strided, grouped or first layers. `measured/fit_plain.jsonl.gz` has
the operations of 69 steps on an H200 with TF32 off, `fit_benchmark.jsonl.gz` some of them with `cudnn.benchmark`. Each
operation counts with the faster of the two. Only ratios are used: of each family to 1x1 convolutions forward, because
an H200 reaches another share of its peak than older GPUs. No public step is used.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import log, log2

import msgspec
import numpy as np
from msgspec.structs import replace

from lab.evidence import MEASURED, Run, operations
from lab.fit_cards import write
from lab.rows import read_lines
from teraflock.estimate.bounds import CardModel, card_model
from teraflock.estimate.operation import Work
from teraflock.estimate.reach import fitted
from teraflock.estimate.scaled import LAUNCH_SECONDS, PLAIN_PASSES, plain_share
from teraflock.estimate.speed import PEAKS_H200

FILES = ("fit_plain", "fit_benchmark")
REFERENCE = "convf:plain:1"
CURVED = (":k", ":point", "depthwise")
"""Ends of families that have evidence of their own, and depthwise ones, which never use tensor cores."""
FLOOR_MIN = 60e-6
"""Shorter operations do not fill the 132 SMs of an H200, while they do fill older GPUs."""
OPERATIONS_MIN = 5


class PlainConvolution(msgspec.Struct, frozen=True):
    work: Work
    seconds: float

    @property
    def arithmetic_seconds(self) -> float:
        return self.work.flops / PEAKS_H200.fp32

    @property
    def floor_seconds(self) -> float:
        return max(self.arithmetic_seconds, self.work.bytes / PEAKS_H200.bandwidth)


def convolutions() -> list[PlainConvolution]:
    """Every distinct convolution with its best time."""
    found: dict[tuple[str, ...], PlainConvolution] = {}
    for key, each in _measured():
        if key not in found or each.seconds < found[key].seconds:
            found[key] = each
    return list(found.values())


def _measured() -> Iterator[tuple[tuple[str, ...], PlainConvolution]]:
    for file in FILES:
        for row in read_lines(MEASURED / f"{file}.jsonl.gz"):
            for each in row["ops"] if row["job"].get("plain") else ():
                one = Run(file, {**row, "ops": [each]}, scene=None)  # type: ignore[arg-type]  # of operations alone
                for timed in operations(one):
                    if timed.view.kernel and timed.view.family.startswith("conv"):
                        seconds = 1e-6 * timed.microseconds - LAUNCH_SECONDS
                        yield tuple(each[:3]), PlainConvolution(timed.view, seconds)


def fit(rows: Iterable[PlainConvolution], model: CardModel) -> CardModel:
    bare = replace(model, plain={})
    above: dict[str, list[float]] = defaultdict(list)
    narrow: dict[tuple[object, ...], float] = {}
    for each in rows:
        family = each.work.family
        if ":grouped:" in family:
            # The heuristics of cuDNN choose kernels that are up to ten times slower for some batches of a layer.
            layer = family, *each.work.dims[1:]
            narrow[layer] = min(narrow.get(layer, np.inf), log(each.seconds / each.arithmetic_seconds))
        elif each.floor_seconds >= FLOOR_MIN and (family == REFERENCE or not family.endswith(CURVED)):
            above[family].append(log(each.seconds / _by_curve(each.work, bare)))
    usual = float(np.median(above.pop(REFERENCE)))
    return replace(
        model,
        plain={
            family: round(float(np.median(its)) - usual, 3)
            for family, its in sorted(above.items())
            if "depthwise" not in family and len(its) >= OPERATIONS_MIN
        },
        grouped={way: _line(narrow, way, usual) for way in "fb"},
    )


def _by_curve(work: Work, model: CardModel) -> float:
    arithmetic = work.flops * plain_share(work, fitted(), model) / PEAKS_H200.fp32
    return max(PLAIN_PASSES * work.bytes / PEAKS_H200.bandwidth, arithmetic)


def _line(layers: dict[tuple[object, ...], float], way: str, usual: float) -> list[float]:
    mine = [(float(str(key[2])), value) for key, value in layers.items() if str(key[0])[len("conv")] == way]
    slope, start = np.polyfit([log2(window) for window, _ in mine], [value for _, value in mine], 1)
    return [round(float(start) - usual, 3), round(float(slope), 3)]


def main() -> None:
    write(fit(convolutions(), card_model()))


if __name__ == "__main__":
    main()
