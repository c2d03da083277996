"""Fits the pace of hosts and the width of the interval: what whole steps took, against what never saw them says."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import copy

import msgspec
import numpy as np

from recording.evidence import FILES, IN_CONTEXT, ROW_FILES, Run, Timed
from recording.fit_curves import fit_curves
from recording.fit_host import PACES, Array, Replay, fit_host
from teraflock.estimate.speed import Measured
from teraflock.estimate.step import HOSTED_SHARE

FOLDS = 8


class Fitted:
    """Everything, from such runs and operations as it is given."""

    def __init__(
        self, rows: Sequence[Timed], host: Sequence[Run], ordinary: Sequence[Run], matrix: list[float]
    ) -> None:
        self.known = msgspec.structs.replace(fit_curves(rows), matrix=matrix)
        self.constants = fit_host([Replay(run, self.known) for run in host])
        self.paces = fit_host([self.replay(run) for run in ordinary], PACES)

    def replay(self, run: Run) -> Replay:
        return Replay(run, self.known).paced(self.constants)

    def pace(self, task: str) -> float:
        return float(self.paces[list(PACES).index(task)])

    def own_pace(self, run: Run, replay: Replay) -> float:
        """At which it would have been met exactly."""
        low, high = PACE_RANGE
        at = list(PACES).index(run.job["task"])
        for _ in range(PACE_TURNS):
            middle = (low * high) ** 0.5
            paces = self.paces.copy()
            paces[at] = middle
            low, high = (middle, high) if replay.predicted(paces)[0] < run.seconds else (low, middle)
        return low


PACE_RANGE = (0.3, 8.0)
PACE_TURNS = 20
BUSY_SHARE = 0.9
"""Where the GPU is busy for more of a step than this, it decides."""


class Told:
    """A run as it was predicted by what never saw it."""

    def __init__(self, run: Run, fitted: Fitted) -> None:
        replay = fitted.replay(run)
        self.run, self.replay, self.known, self.paces = run, replay, fitted.known, fitted.paces
        self.seconds, _ = replay.predicted(fitted.paces)
        self.residual = float(np.log(run.seconds / self.seconds))
        self.share = replay.gpu_seconds / self.seconds
        self.pace = fitted.own_pace(run, replay) / fitted.pace(run.job["task"])
        """Over the usual one."""

    def covers(self, paces: Array, gpu: Array) -> bool:
        ends = []
        for pace, residual in zip(paces, gpu, strict=True):
            there = copy(self.replay)
            there.rest, there.after = (
                self.replay.rest * np.exp(residual),
                self.replay.after * np.exp(residual),
            )
            ends.append(there.predicted(self.paces * [pace, pace, 1, 1])[0])
        return ends[0] <= self.run.seconds <= ends[1]


def fit_width(
    rows: Sequence[Timed], host: Sequence[Run], ordinary: Sequence[Run], matrix: list[float]
) -> tuple[dict[str, list[float]], list[float]]:
    """Paces over the usual one, and residuals of the GPU: tenth and ninetieth percentile over whole steps, each
    predicted twice: by what never saw it, and by what never saw its model. Then both are drawn together until four in
    five are covered.

    Of steps measured as usual: what ran in a context took up to a tenth longer also where the GPU decides.
    """
    every = [
        each
        for folds in (_folds(ordinary), [index % FOLDS for index in range(len(ordinary))])
        for each in _held_out(rows, host, ordinary, matrix, folds)
    ]
    told = [each for each in every if each.run.file not in IN_CONTEXT]
    found = {
        task: [each.pace for each in told if each.share < HOSTED_SHARE and each.run.job["task"] == task]
        for task in TASKS
    }
    busy = [each for each in told if each.share > BUSY_SHARE]
    _tell("all", [each.residual for each in told])
    _tell("where the GPU decides", [each.residual for each in busy])
    for task, each in found.items():
        _tell(f"pace of shared hosts, {task}", list(np.log(each)))
    for file in (*FILES, *ROW_FILES):
        its = [each.pace for each in every if each.run.file == file and each.share < HOSTED_SHARE]
        print(f"{file}: {np.median(its):.2f} times the usual pace, {len(its)} predictions")
    ends = {task: np.quantile(each, (0.1, 0.9)) for task, each in found.items()}
    edges = np.quantile([each.residual for each in busy], (0.1, 0.9))
    share = _share_covering(told, ends, edges)
    print(f"{share:.2f} of both widths cover {COVERED:.0%}")
    paces = {f"shared_{task}": [float(v**share) for v in each] for task, each in ends.items()}
    paces |= {f"own_{task}": each for task, each in _alone(host, told[0].known).items()}
    return paces, [round(float(share * each), 4) for each in edges]


def _alone(host: Sequence[Run], known: Measured) -> dict[str, list[float]]:
    """The same of hosts that nobody disturbs, over the costs fitted on the other models."""
    found: dict[str, list[float]] = defaultdict(list)
    replays = [(Replay(run, known), fold) for run, fold in zip(host, _folds(host), strict=True)]
    for fold in range(FOLDS):
        constants = fit_host([each for each, its in replays if its != fold])
        for replay, its in replays:
            seconds, _ = replay.predicted(constants)
            if its == fold and replay.gpu_seconds < HOSTED_SHARE * seconds:
                found[replay.task].append(replay.seconds / seconds)
    for task, ratios in found.items():
        _tell(f"pace of own hosts, {task}", list(np.log(ratios)))
    return {task: [float(v) for v in np.quantile(ratios, (0.1, 0.9))] for task, ratios in found.items()}


def _folds(runs: Sequence[Run]) -> list[int]:
    """By model, the same for the same models."""
    models = sorted({run.job["model"] for run in runs})
    return [models.index(run.job["model"]) % FOLDS for run in runs]


TASKS = ("infer", "train")
COVERED = 0.8


def _share_covering(told: Sequence[Told], ends: dict[str, Array], edges: Array) -> float:
    def covered(share: float) -> float:
        return float(np.mean([each.covers(ends[each.replay.task] ** share, share * edges) for each in told]))

    return min(np.arange(0.5, 1.5, 0.02), key=lambda share: (abs(covered(share) - COVERED), share))


def _held_out(
    rows: Sequence[Timed], host: Sequence[Run], ordinary: Sequence[Run], matrix: list[float], folds: list[int]
) -> Iterator[Told]:
    for fold in range(FOLDS):
        out = {id(run) for run, its in zip(ordinary, folds, strict=True) if its == fold}
        left = [run for run in ordinary if id(run) not in out]
        models = {run.job["model"] for run in left}
        fitted = Fitted(
            [row for row in rows if id(row.run) not in out],
            [run for run in host if run.job["model"] in models],
            left,
            matrix,
        )
        yield from (Told(run, fitted) for run in ordinary if id(run) in out)


def _tell(what: str, values: Sequence[float]) -> None:
    errors = np.abs(np.exp(-np.array(values)) - 1)
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    print(
        f"{what}: {len(values)} held out, median error {np.median(errors):.3f}, p90 {np.quantile(errors, 0.9):.3f}; "
        f"{low:+.3f} {middle:+.3f} {high:+.3f}",
        flush=True,
    )
