"""Fits the slowdown of older generations: `python -m lab.fit_cards PUBLIC_STEPS` writes to estimate/data/cards.json.

`TRACES` as another argument adds models that the zoo lacks. The numbers that ship are fitted without: `bench` then
judges the same fit, and public BERT steps count as the BERT of the zoo, which is what an estimate of them would use.

The split was frozen before the first fit: each card of the table is held out in turn and predicted from the others. The
written numbers are fitted on all cards. The fit has one number per class of work: the slowdown per five years of age of
a card's generation. Needs numpy.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from math import log
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from lab.public import PublicStep, public_steps
from teraflock.estimate.bounds import CLASSES, DATA, CardModel, card_model
from teraflock.estimate.cards import peaks

AGE_PRIOR = 0.2
"""Prior standard deviation of a slope."""
NOISE = 0.15
FAR = 0.12
"""Errors above this, as a logarithm, are clipped to it, because tables have errors of their own."""
TURNS = 5


class Judged(msgspec.Struct, frozen=True):
    """A row with the numbers that are not part of this fit."""

    row: PublicStep
    model: CardModel
    pace: float | None = None
    """Pace of the host, if it is known."""

    def seconds(self, slopes: dict[str, float]) -> float:
        there = peaks(self.row.card, model=replace(self.model, age=slopes))
        assert there is not None
        return self.row.step.seconds_where_gpu_takes(self.row.step.scaled.seconds_on(there), self.pace)


def fit(rows: Sequence[Judged]) -> dict[str, float]:
    """Robust least squares of logarithms. The weight of a card is the square root of its number of rows."""
    counts = Counter(each.row.card.id for each in rows)
    weight = np.array([1 / np.sqrt(counts[each.row.card.id]) for each in rows]) / NOISE**2
    slopes = dict.fromkeys(CLASSES, 0.0)
    for _ in range(TURNS):
        now = np.array([each.seconds(slopes) for each in rows])
        left = np.log([each.row.seconds for each in rows]) - np.log(now)
        steep = np.zeros((len(rows), len(CLASSES)))
        for at, name in enumerate(CLASSES):
            more = {**slopes, name: slopes[name] + 0.01}
            steep[:, at] = [log(each.seconds(more) / old) / 0.01 for each, old in zip(rows, now, strict=True)]
        trust = weight / np.maximum(1, np.abs(left) / FAR)
        prior = np.eye(len(CLASSES)) / AGE_PRIOR**2
        values = np.array([slopes[name] for name in CLASSES])
        moved = np.linalg.solve(
            steep.T @ (trust[:, None] * steep) + prior, steep.T @ (trust * left) - prior @ values
        )
        slopes = {name: slopes[name] + float(by) for name, by in zip(CLASSES, moved, strict=True)}
    return slopes


def left_out(rows: Sequence[Judged]) -> list[tuple[Judged, float]]:
    """Each row with its prediction from the other cards."""
    cards = sorted({each.row.card.id for each in rows})
    slopes = {card: fit([each for each in rows if each.row.card.id != card]) for card in cards}
    return [(each, each.seconds(slopes[each.row.card.id])) for each in rows]


def main() -> None:
    model = card_model()
    rows = [
        Judged(row, model) for row in public_steps(Path(sys.argv[1]), *(Path(each) for each in sys.argv[2:]))
    ]
    slopes = {name: round(value, 3) for name, value in fit(rows).items()}
    errors = [abs(said / each.row.seconds - 1) for each, said in left_out(rows)]
    print(
        f"{len(rows)} rows, held out: {np.median(errors):.1%}, 90th percentile {np.quantile(errors, 0.9):.1%}"
    )
    write(replace(model, age=slopes))


def write(model: CardModel) -> None:
    text = json.dumps(msgspec.to_builtins(model), sort_keys=True, separators=(",", ":"))
    Path(DATA).write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
