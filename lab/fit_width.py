"""Fits the pace of hosts and the width of the interval: what whole steps took, against what never saw them says."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lab.evidence import FILES, IN_CONTEXT, ROW_FILES, Run
from lab.fit_host import Array, Replay, fit_host
from lab.held_out import FOLDS, Evidence, Fitted, Told, folds_of_models, told_twice
from teraflock.estimate.step import HOSTED_SHARE


class Spread:
    """How far off the GPU's time is where it decides: wider away from measured operations, and of models whose other
    steps were further off."""

    def __init__(self, busy: Sequence[Told]) -> None:
        far = np.array([1 - each.replay.nearness for each in busy])
        residuals = np.array([each.residual for each in busy])
        sizes = np.minimum(np.abs(residuals), OUTLIER)
        self._slope, self._least = np.polyfit(far, sizes, 1)
        ratios = sizes / (self._least + self._slope * far)
        self._ratios: dict[str, list[tuple[Run, float]]] = defaultdict(list)
        for each, ratio in zip(busy, ratios / np.mean(ratios), strict=True):
            self._ratios[each.run.job["model"]].append((each.run, float(ratio)))
        widths = [self._width(each) for each in busy]
        self._ends = np.quantile(residuals / widths, (0.1, 0.9))
        order = np.argsort(widths)
        for quarter in np.array_split(order, 4):
            _tell(f"of width {np.mean(np.array(widths)[quarter]):.3f}", list(residuals[quarter]))

    def _width(self, each: Told) -> float:
        """Without what the run itself was off."""
        far = 1 - each.replay.nearness
        return float(self._least + self._slope * far) * self.factor(each.run.job["model"], but=each.run)

    def factor(self, model: str, but: Run | None = None) -> float:
        ratios = [ratio for run, ratio in self._ratios[model] if run is not but]
        return (COMMON + sum(ratios)) / (COMMON + len(ratios))

    def factors(self) -> dict[str, float]:
        return {model: round(self.factor(model), 2) for model in sorted(self._ratios)}

    def around(self, each: Told) -> Array:
        return np.array(self._ends * self._width(each))

    def edges(self) -> Array:
        """Where all is near, and where nothing is: in between the width goes evenly."""
        return np.outer([self._least, self._least + self._slope], self._ends)


OUTLIER = 0.2
COMMON = 6
"""So many steps of a model must speak before they count as much as those of all others."""


class Widths(NamedTuple):
    pace: dict[str, list[float]]
    spread: list[list[float]]
    models: dict[str, float]


def fit_width(evidence: Evidence, fitted: Fitted) -> Widths:
    """Paces of hosts, and residuals of the GPU: tenth and ninetieth percentile over whole steps, each predicted twice:
    by what never saw it, and by what never saw its model. Then both are drawn together until four in five are covered.

    Of steps measured as usual: what ran in a context took up to a tenth longer also where the GPU decides.
    """
    every = list(told_twice(evidence, fitted))
    told = [each for each in every if each.run.file not in IN_CONTEXT]
    found = {
        task: [each.pace for each in told if each.is_hosted and each.run.job["task"] == task]
        for task in TASKS
    }
    ends = {task: np.quantile(each, (0.1, 0.9)) for task, each in found.items()}
    busy = [each for each in told if each.is_busy(ends[each.replay.task][1])]
    _tell("all", [each.residual for each in told])
    _tell("where the GPU decides", [each.residual for each in busy])
    spread = Spread(busy)
    for task, each in found.items():
        _tell(f"pace of shared hosts, {task}", list(np.log(each)))
    for file in (*FILES, *ROW_FILES):
        its = [each.pace for each in every if each.run.file == file and each.is_hosted]
        print(f"{file}: {np.median(its):.2f} times the usual pace, {len(its)} predictions")
    share = _share_covering(told, ends, spread)
    hosted = [each for each in told if each.is_hosted]
    apart = {id(each) for each in (*busy, *hosted)}
    between = [each for each in told if id(each) not in apart]
    for what, steps in (("all", told), ("GPU decides", busy), ("host decides", hosted), ("between", between)):
        print(f"{share:.2f} of both widths cover {_covered(steps, ends, spread, share):.1%}: {what}")
    paces = {f"shared_{task}": _around(fitted.pace(task), each**share) for task, each in ends.items()}
    alone = _alone(evidence.host, fitted.host)
    paces |= {f"own_{task}": _around(1.0, each) for task, each in alone.items()}
    return Widths(paces, (share * spread.edges()).round(4).tolist(), spread.factors())


def _around(middle: float, ends: Array) -> list[float]:
    low, high = (middle * float(each) for each in ends)
    return [round(each, 3) for each in (low, middle, high)]


def _alone(host: Sequence[Run], replayed: Sequence[Replay]) -> dict[str, Array]:
    """The same of hosts that nobody disturbs, over the costs fitted on the other models."""
    found: dict[str, list[float]] = defaultdict(list)
    replays = list(zip(replayed, folds_of_models(host), strict=True))
    for fold in range(FOLDS):
        constants = fit_host([each for each, its in replays if its != fold])
        for replay, its in replays:
            seconds, _ = replay.predicted(constants)
            if its == fold and replay.gpu_seconds < HOSTED_SHARE * seconds:
                found[replay.task].append(replay.seconds / seconds)
    for task, ratios in found.items():
        _tell(f"pace of own hosts, {task}", list(np.log(ratios)))
    return {task: np.quantile(ratios, (0.1, 0.9)) for task, ratios in found.items()}


TASKS = ("infer", "train")
COVERED = 0.8


def _share_covering(told: Sequence[Told], ends: dict[str, Array], spread: Spread) -> float:
    return min(
        np.arange(0.5, 1.5, 0.02),
        key=lambda share: (abs(_covered(told, ends, spread, share) - COVERED), share),
    )


def _covered(told: Sequence[Told], ends: dict[str, Array], spread: Spread, share: float) -> float:
    return float(
        np.mean([each.covers(ends[each.replay.task] ** share, share * spread.around(each)) for each in told])
    )


def _tell(what: str, values: Sequence[float]) -> None:
    errors = np.abs(np.exp(-np.array(values)) - 1)
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    print(
        f"{what}: {len(values)} held out, median error {np.median(errors):.3f}, p90 {np.quantile(errors, 0.9):.3f}; "
        f"{low:+.3f} {middle:+.3f} {high:+.3f}",
        flush=True,
    )
