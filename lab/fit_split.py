"""Fits what bounds operations: `python -m lab.fit_split` writes to estimate/data/cards.json.

`measured/fit_shares.jsonl.gz` has 36 steps on an H200 with all of its 132 SMs and with 66, 32 and 14 of them beside
the whole bandwidth, operation by operation. For each kind of operation one number is sought: how much of its time above
the floor the SMs share. It prints how far off operations are where one number of SMs is left out of the fit.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import log
from pathlib import Path

import msgspec
from msgspec.structs import replace

from lab.evidence import Run, operations
from lab.fit_cards import write
from lab.rows import read_lines
from teraflock.estimate.bounds import CardModel, card_model, sm_kind
from teraflock.estimate.operation import Work
from teraflock.estimate.scaled import Scaled
from teraflock.estimate.speed import PEAKS_H200, Peaks

SHARES_FILE = Path(__file__).parent / "measured/fit_shares.jsonl.gz"
WHOLE = PEAKS_H200.sms
MICROSECONDS_MIN = 12.0
"""Shorter operations are mostly launch."""
GRID = [each / 20 for each in range(21)]
SLOPES, STARTS = (0.12, 0.14, 0.16, 0.18, 0.2, 0.22), (5.0, 5.4, 5.8, 6.2)


class Shared(msgspec.Struct, frozen=True):
    """One operation with its seconds by the number of SMs it ran on."""

    work: Work
    tf32: bool
    count: int
    seconds: dict[int, float]

    @property
    def weight(self) -> float:
        return self.count * self.seconds[WHOLE]


def shared_operations() -> list[Shared]:
    found: dict[tuple[str, ...], dict[int, float]] = defaultdict(dict)
    about: dict[tuple[str, ...], tuple[Work, bool, int]] = {}
    for row in read_lines(SHARES_FILE):
        job = row["job"]
        for each in row["ops"]:
            one = Run("fit_shares", {**row, "ops": [each]}, scene=None)  # type: ignore[arg-type]  # of operations alone
            key = (job["model"], job["task"], job["precision"], each[0], each[1], each[2])
            for timed in operations(one):
                found[key][row["sms"]] = each[5] * 1e-6
                about[key] = timed.view, job["precision"] == "tf32", each[3]
    return [
        Shared(*about[key], seconds)
        for key, seconds in found.items()
        if len(seconds) == 4 and about[key][0].kernel and seconds[WHOLE] * 1e6 >= MICROSECONDS_MIN
    ]


def with_sms(sms: int) -> Peaks:
    """The H200 with fewer SMs and all of its bandwidth."""
    share = sms / WHOLE
    h200 = PEAKS_H200
    return replace(h200, sms=sms, fp32=h200.fp32 * share, tf32=h200.tf32 * share, half=h200.half * share)


def errors(each: Shared, model: CardModel, counts: Sequence[int]) -> Iterator[float]:
    scaled = Scaled([(each.work, 1, each.seconds[WHOLE])], tf32=each.tf32, model=model)
    for sms in counts:
        yield log(scaled.seconds_on(with_sms(sms)) / each.seconds[sms])


def off(rows: Sequence[Shared], model: CardModel, counts: Sequence[int]) -> float:
    """Mean distance of logarithms, by time."""
    total = sum(each.weight * sum(map(abs, errors(each, model, counts))) for each in rows)
    return total / max(1e-12, len(counts) * sum(each.weight for each in rows))


def fit(rows: Sequence[Shared], model: CardModel, counts: Sequence[int]) -> CardModel:
    by_kind: dict[str, list[Shared]] = defaultdict(list)
    for each in rows:
        by_kind[sm_kind(each.work)].append(each)
    for kind, mine in by_kind.items():
        if kind == "batch_norm":
            choices = [replace(model, batch_norm=[slope, start]) for slope in SLOPES for start in STARTS]
        else:
            choices = [replace(model, sm_share={**model.sm_share, kind: share}) for share in GRID]
        model = min(choices, key=lambda each: off(mine, each, counts))
    return model


def main() -> None:
    rows, smaller = shared_operations(), [66, 32, 14]
    for left in smaller:
        others = [each for each in smaller if each != left]
        made = fit(rows, card_model(), others)
        print(f"{left} SMs left out: {off(rows, made, [left]):.3f}, fitted on: {off(rows, made, others):.3f}")
    write(fit(rows, card_model(), smaller))


if __name__ == "__main__":
    main()
