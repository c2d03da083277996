"""Fits the numbers of `estimate/reach.py`: `python -m lab.reach FOLDER` writes estimate/data/reach.json.

FOLDER has public latencies of single operators (`lab/operators.py`). `fit` takes the cards that it may use, so that a
test can hold one out. Needs numpy.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, median

import msgspec
import numpy as np

from lab.operators import CARDS, OPERATORS, Latency, latencies
from teraflock.catalog.cards import all_cards, card
from teraflock.estimate.cards import MEASURED_ID
from teraflock.estimate.reach import Curve, Effects, Reach, power_watts, shape, shortage, trait, traits
from teraflock.estimate.speed import PEAKS_H200

OUT = Path(__file__).parents[1] / "src/teraflock/estimate/data/reach.json"
PASSES = ("add", "relu", "gelu", "ln")
"""Operators that show the bandwidth. Softmax is not one of them: its kernels have changed since the measurements."""


def load(folder: Path) -> list[Latency]:
    """Shapes that were also measured on an H200. All shapes of convolutions, whose curve does not need the H200."""
    found = [each for name in OPERATORS for each in latencies(folder, name)]
    return [each for each in found if each.h200 or each.operator == "conv"]


def fit(rows: Sequence[Latency], cards: Sequence[str]) -> Reach:
    watts = usual_watts()
    matmuls = [each for each in rows if each.operator in ("linear", "bmm")]
    convolutions = [each for each in rows if each.operator == "conv"]
    matmul_curve = _curve(matmuls, [*cards, MEASURED_ID])
    convolution_curve = _curve(convolutions, cards)
    seen = {
        "matmul": {gpu: _against(matmuls, gpu, matmul_curve) for gpu in (*cards, MEASURED_ID)},
        "convolution": {gpu: _against(convolutions, gpu, convolution_curve) for gpu in cards},
    }
    sag = _sag(seen["matmul"], watts)
    for kind in seen.values():
        for gpu in kind:
            kind[gpu] -= sag * shortage(card(gpu), watts)
    # Convolutions ran over zeros, so cards with little power were faster than with real data: skip those.
    fed = {gpu: each for gpu, each in seen["convolution"].items() if shortage(card(gpu), watts) > SHORT}
    passes = {gpu: _passes(rows, gpu) for gpu in cards}
    return Reach(
        matmul=_effects(seen["matmul"], ("narrow", "wide")),
        convolution=_effects(fed, ("all",)),
        bandwidth=_effects({**passes, MEASURED_ID: 0.0}, ("free", "inline_ecc")),
        sag=round(sag, 3),
        watts=watts,
        matmul_curve=matmul_curve,
        convolution_curve=convolution_curve,
    )


def usual_watts() -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for each in all_cards():
        if each.cuda and each.tdp_watts and (watts := power_watts(each)) and each.fp32_tflops:
            found[each.architecture.partition(" ")[0]].append(watts / each.fp32_tflops)
    return {generation: round(median(values), 2) for generation, values in sorted(found.items())}


def _passes(rows: Iterable[Latency], gpu: str) -> float:
    bandwidth = (card(gpu).bandwidth_gbs or 0.0) * 1e9
    found: dict[str, list[float]] = {name: [] for name in PASSES}
    for each in rows:
        if each.operator in found and each.h200:
            found[each.operator].append(
                np.log(each.h200 * PEAKS_H200.bandwidth / bandwidth / each.seconds[gpu])
            )
    return fmean(median(values) for values in found.values())


def _curve(rows: Sequence[Latency], cards: Sequence[str]) -> Curve:
    """The curve that all cards share. Each card also has its own constant; the curve includes their mean."""
    left, right = [], []
    for each in rows:
        for at, gpu in enumerate(cards):
            left.append([*_row(each), *np.eye(len(cards))[at][1:]])
            right.append(_above(each, gpu))
    x, y = np.array(left), np.array(right)
    solved = np.linalg.solve(x.T @ x + 1e-3 * np.eye(x.shape[1]), x.T @ y)
    wide = x.shape[1] - len(cards) + 1
    solved[0] += solved[wide:].sum() / len(cards)
    ends = zip(x[:, 1:wide].min(0), x[:, 1:wide].max(0), strict=True)
    return Curve(
        slopes=[round(float(v), 4) for v in solved[:wide]],
        bounds=[round(float(v), 3) for pair in ends for v in pair],
    )


def _row(each: Latency) -> list[float]:
    return shape(each.work.dims, each.work.flops / each.work.bytes)


def _above(each: Latency, gpu: str) -> float:
    """Logarithm of time relative to the arithmetic at the data sheet's peak."""
    peak = (card(gpu).fp32_tflops or 0.0) * 1e12
    return float(np.log(_seconds(each, gpu) * peak / each.work.flops))


def _seconds(each: Latency, gpu: str) -> float:
    seconds = each.h200 if gpu == MEASURED_ID else each.seconds[gpu]
    assert seconds
    return seconds


def _against(rows: Iterable[Latency], gpu: str, curve: Curve) -> float:
    """How much faster than the curve a card is. All operators have the same weight."""
    found: dict[str, list[float]] = defaultdict(list)
    for each in rows:
        found[each.operator].append(curve.at(_row(each)) - _above(each, gpu))
    return fmean(median(values) for values in found.values())


def _sag(seen: dict[str, float], watts: dict[str, float]) -> float:
    """Slope of reach over the lack of power: cards with little power against others with the same lanes.

    Uses matrix products, which had random numbers. Convolutions ran over zeros, which need less power.
    """
    short = {gpu: shortage(card(gpu), watts) for gpu in seen}
    left, right = [], []
    for gpu, value in seen.items():
        lanes = traits(card(gpu))[-1]
        alike = [seen[each] for each in seen if short[each] > SHORT and traits(card(each))[-1] == lanes]
        if short[gpu] <= SHORT and alike:
            left.append(short[gpu])
            right.append(value - fmean(alike))
    return max(0.0, float(np.dot(left, right) / np.dot(left, left))) if left else SAG_UNSEEN


SHORT = -0.2
SAG_UNSEEN = 0.33
"""Power grows with about the third power of the clock. Used if no card with little power was measured."""


def _effects(seen: dict[str, float], kinds: Sequence[str]) -> Effects:
    """The mean of each trait, and the rest of every card above it. A trait without cards gets the mean of all.

    Cards with little power only count for the effect of power, unless a trait has no other card.
    """
    watts = usual_watts()
    by: dict[str, list[float]] = {}
    for kind in kinds:
        mine = [gpu for gpu in seen if trait(card(gpu), kinds) == kind]
        fed = [gpu for gpu in mine if shortage(card(gpu), watts) > SHORT]
        by[kind] = [seen[gpu] for gpu in fed or mine]
    base = {kind: fmean(values or seen.values()) for kind, values in by.items()}
    chips = {
        card(gpu).architecture.partition(" ")[2]: round(value - base[trait(card(gpu), kinds)], 3)
        for gpu, value in seen.items()
    }
    return Effects(base={kind: round(value, 3) for kind, value in base.items()}, chips=chips)


def main() -> None:
    made = fit(load(Path(sys.argv[1])), CARDS)
    OUT.write_text(json.dumps(msgspec.to_builtins(made), sort_keys=True, separators=(",", ":")) + "\n")
    print(OUT.read_text())


if __name__ == "__main__":
    main()
