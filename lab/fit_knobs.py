"""Fits the effect of a locked clock: `python -m lab.fit_knobs KNOBS` writes to estimate/data/cards.json.

KNOBS is `h200_knobs.csv`, which is not part of the project: whole steps on one H200 with its SM clock locked, its power
limited, or a share of its SMs (MPS). Each clock is held out in turn; the split was frozen before the first fit. Shares
of SMs are only used to judge, because `lab/fit_split.py` fits them on operations. The effect of low power
(`CardModel.power`) was set by hand. It is between the results of the two power limits here (0.3 for convolutions, 0.4
for matrix products, 0.1 for the rest) and those of public steps on cards with little power, which are about twice as
high.
"""

import csv
import sys
from collections.abc import Iterator, Sequence
from math import log
from pathlib import Path
from statistics import median

import msgspec
from msgspec.structs import replace

from lab.fit_cards import write
from teraflock.catalog.cards import card
from teraflock.catalog.model import Card, CardSlice
from teraflock.estimate.bounds import CardModel, card_model
from teraflock.estimate.cards import MEASURED_ID, peaks
from teraflock.estimate.derived import sliced, throttled
from teraflock.estimate.estimator import Estimator, step_of
from teraflock.estimate.step import OWN, StepWork
from teraflock.workload.model import Workload

CLOCKS = [0.75, 0.8, 0.85, 0.9, 0.95, 1.0]
SMS = {12: 14, 25: 32, 50: 66, 75: 98}
"""Percentage of the SMs that a process requests from MPS → number of SMs it gets."""


class Knob(msgspec.Struct, frozen=True):
    setting: tuple[str, int]
    workload: Workload
    seconds: float


def knobs(path: Path) -> Iterator[Knob]:
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines):
            workload = Workload(
                model=row["model"],
                task=row["task"],
                batch=int(row["batch"]),
                seq=int(row["seq"]) if row["seq"] else None,
                precision=row["precision"],
                optimizer=row["optimizer"] or "sgd",
            )
            if row["knob"] != "plain":
                yield Knob((row["knob"], int(row["value"])), workload, float(row["step_seconds_min"]))


def virtual(knob: str, value: int) -> Card:
    """The H200 with this setting, as a card."""
    h200 = card(MEASURED_ID)
    if knob == "clock":
        return throttled(h200, clock_mhz=value)
    if knob == "power":
        return throttled(h200, watts=value)
    part = CardSlice(
        family="", card_memory_gb=0, profile="", share=0, memory_gb=0, memory_share=1.0, sms=SMS[value]
    )
    return sliced(h200, part)


_STEPS: dict[tuple[Workload, float], StepWork] = {}


def step_for(workload: Workload, model: CardModel) -> StepWork:
    """Computed once per exponent of the clock, the only fitted number that changes it."""
    key = workload, model.clock
    if key not in _STEPS:
        estimator = Estimator(workload)
        _STEPS[key] = step_of(estimator, estimator.scene(), host=OWN, card_model=model)
    return _STEPS[key]


def error(knob: Knob, model: CardModel) -> float:
    there = peaks(virtual(*knob.setting), model=model)
    assert there is not None
    return log(step_for(knob.workload, model).seconds(there) / knob.seconds)


def off(rows: Sequence[Knob], model: CardModel) -> float:
    return sum(abs(error(each, model)) for each in rows) / max(1, len(rows))


def fit(rows: Sequence[Knob], model: CardModel) -> CardModel:
    clocked = [each for each in rows if each.setting[0] == "clock"]
    return min((replace(model, clock=each) for each in CLOCKS), key=lambda made: off(clocked, made))


def left_out(rows: Sequence[Knob], model: CardModel) -> list[tuple[Knob, float]]:
    """Each row with its error when its setting is held out."""
    found = []
    for setting in sorted({each.setting for each in rows}):
        made = fit([each for each in rows if each.setting != setting], model)
        found += [(each, error(each, made)) for each in rows if each.setting == setting]
    return found


def main() -> None:
    rows, model = list(knobs(Path(sys.argv[1]))), card_model()
    judged = left_out(rows, model)
    for setting in sorted({each.setting for each in rows}):
        mine = [abs(value) for each, value in judged if each.setting == setting]
        print(f"{setting} held out: median {median(mine):.1%}")
    write(fit(rows, model))


if __name__ == "__main__":
    main()
