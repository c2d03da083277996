"""Fits what `estimate/reach.py` knows: `python -m recording.reach FOLDER` writes estimate/data/reach.json.

FOLDER holds public latencies of single operators (`recording/operators.py`). `fit` takes the cards it may look at, so
that a judge can hold one out. Needs numpy.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, median

import msgspec
import numpy as np

from recording.operators import CARDS, OPERATORS, Latency, latencies
from teraflock.catalog.cards import all_cards, card
from teraflock.estimate.cards import MEASURED_ID
from teraflock.estimate.reach import Effects, Reach, on_curve, shape, shortage, trait, traits
from teraflock.estimate.speed import PEAKS_H200, floor_seconds

OUT = Path(__file__).parents[1] / "src/teraflock/estimate/data/reach.json"
PASSES = ("add", "relu", "gelu", "ln")
"""Operators that tell the bandwidth. Softmax has changed its kernels since these were measured."""


def load(folder: Path) -> list[Latency]:
    """Shapes that were measured on an H200 too; of convolutions, whose curve needs none, all."""
    found = [each for name in OPERATORS for each in latencies(folder, name)]
    return [each for each in found if each.h200 or each.operator == "conv"]


def fit(rows: Sequence[Latency], cards: Sequence[str]) -> Reach:
    watts = usual_watts()
    curve, bounds = _curve([each for each in rows if each.operator == "conv"], cards)
    seen = {
        "matmul": {gpu: _matmul(rows, gpu) for gpu in cards},
        "convolution": {gpu: _convolution(rows, gpu, curve, bounds) for gpu in cards},
    }
    sag = _sag(seen, {gpu: shortage(card(gpu), watts) for gpu in cards})
    for kind in seen.values():
        for gpu in cards:
            kind[gpu] -= sag * shortage(card(gpu), watts)
    return Reach(
        matmul=_effects({**seen["matmul"], MEASURED_ID: 0.0}, ("narrow", "wide")),
        convolution=_effects(seen["convolution"], ("all",)),
        bandwidth=_effects({**{gpu: _passes(rows, gpu) for gpu in cards}, MEASURED_ID: 0.0}, ("HBM", "GDDR")),
        sag=round(sag, 3),
        watts=watts,
        curve=curve,
        bounds=bounds,
        share=_share(rows),
    )


def usual_watts() -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for each in all_cards():
        if each.cuda and each.tdp_watts and each.fp32_tflops:
            found[each.architecture.partition(" ")[0]].append(each.tdp_watts / each.fp32_tflops)
    return {generation: round(median(values), 2) for generation, values in sorted(found.items())}


def _matmul(rows: Iterable[Latency], gpu: str) -> float:
    """Arithmetic at the card's peak, as far above its floor as on an H200, over what was measured."""
    peak = (card(gpu).fp32_tflops or 0.0) * 1e12
    found: dict[str, list[float]] = {"linear": [], "bmm": []}
    for each in rows:
        if each.operator in found and each.h200 and _by_arithmetic(each):
            found[each.operator].append(np.log(_above(each) * each.work.flops / peak / each.seconds[gpu]))
    return fmean(median(values) for values in found.values())


def _above(each: Latency) -> float:
    """How far above its floor an operator stays on the H200."""
    assert each.h200
    return each.h200 / floor_seconds(each.work, PEAKS_H200, tf32=False)


def _by_arithmetic(each: Latency) -> bool:
    """Whether arithmetic decides on every card: more of it per byte than any card has."""
    return each.work.flops > 40 * each.work.bytes


def _passes(rows: Iterable[Latency], gpu: str) -> float:
    bandwidth = (card(gpu).bandwidth_gbs or 0.0) * 1e9
    found: dict[str, list[float]] = {name: [] for name in PASSES}
    for each in rows:
        if each.operator in found and each.h200:
            found[each.operator].append(
                np.log(_above(each) * each.work.bytes / bandwidth / each.seconds[gpu])
            )
    return fmean(median(values) for values in found.values())


def _curve(rows: Sequence[Latency], cards: Sequence[str]) -> tuple[list[float], list[float]]:
    """Shape of 3x3 convolutions, with a constant of its own for each card, whose mean goes into the curve."""
    left, right = [], []
    for each in rows:
        for at, gpu in enumerate(cards):
            peak = (card(gpu).fp32_tflops or 0.0) * 1e12
            left.append(
                [*shape(each.work.dims, each.work.flops / each.work.bytes), *np.eye(len(cards))[at][1:]]
            )
            right.append(np.log(each.seconds[gpu] * peak / each.work.flops))
    x, y = np.array(left), np.array(right)
    solved = np.linalg.solve(x.T @ x + 1e-3 * np.eye(x.shape[1]), x.T @ y)
    wide = x.shape[1] - len(cards) + 1
    solved[0] += solved[wide:].sum() / len(cards)
    bounds = [
        round(float(v), 3)
        for pair in zip(x[:, 1:wide].min(0), x[:, 1:wide].max(0), strict=True)
        for v in pair
    ]
    return [round(float(v), 4) for v in solved[:wide]], bounds


def _convolution(rows: Iterable[Latency], gpu: str, curve: list[float], bounds: list[float]) -> float:
    peak = (card(gpu).fp32_tflops or 0.0) * 1e12
    return median(
        on_curve(shape(each.work.dims, each.work.flops / each.work.bytes), curve, bounds)
        - float(np.log(each.seconds[gpu] * peak / each.work.flops))
        for each in rows
        if each.operator == "conv"
    )


def _sag(seen: dict[str, dict[str, float]], short: dict[str, float]) -> float:
    """Slope of reach over shortage of power: cards short of it against others of the same lanes."""
    left, right = [], []
    for name, kind in seen.items():
        for gpu, value in kind.items():
            alike = [
                its
                for other, its in kind.items()
                if short[other] > SHORT and traits(card(other))[-1] == traits(card(gpu))[-1]
            ]
            alike += [0.0] if name == "matmul" and traits(card(gpu))[-1] == "wide" else []
            if short[gpu] <= SHORT and alike:
                left.append(short[gpu])
                right.append(value - fmean(alike))
    return max(0.0, float(np.dot(left, right) / np.dot(left, left))) if left else SAG_UNSEEN


SHORT = -0.2
SAG_UNSEEN = 0.33
"""Power grows with about the third power of the clock: what stands in where no card short of power was seen."""


def _effects(seen: dict[str, float], kinds: Sequence[str]) -> Effects:
    """Each trait's mean, and what is left of every card above it. A trait no card has takes the mean of all."""
    by: dict[str, list[float]] = {kind: [] for kind in kinds}
    for gpu, value in seen.items():
        by[trait(card(gpu), kinds)].append(value)
    base = {kind: fmean(values or seen.values()) for kind, values in by.items()}
    chips: dict[str, float] = {}
    generations: dict[str, list[float]] = defaultdict(list)
    for gpu, value in seen.items():
        generation, _, chip = card(gpu).architecture.partition(" ")
        rest = value - base[trait(card(gpu), kinds)]
        chips[chip] = round(rest, 3)
        generations[generation].append(rest)
    return Effects(
        base={kind: round(value, 3) for kind, value in base.items()},
        generations={each: round(fmean(values), 3) for each, values in generations.items()},
        chips=chips,
    )


def _share(rows: Iterable[Latency]) -> float:
    large = [each for each in rows if each.operator == "linear" and each.h200 and _by_arithmetic(each)]
    return round(median(1 / _above(each) for each in large), 3)


def main() -> None:
    made = fit(load(Path(sys.argv[1])), CARDS)
    OUT.write_text(json.dumps(msgspec.to_builtins(made), sort_keys=True, separators=(",", ":")) + "\n")
    print(OUT.read_text())


if __name__ == "__main__":
    main()
