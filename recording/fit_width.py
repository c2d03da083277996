"""Fits the pace of hosts and the width of the interval: what whole steps took, against what never saw them says."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import copy
from math import hypot

import msgspec
import numpy as np

from recording.evidence import IN_CONTEXT, Run, Timed
from recording.fit_curves import fit_curves
from recording.fit_host import PACES, Array, Replay, fit_host
from teraflock.estimate.speed import Measured
from teraflock.estimate.step import HOSTED_SHARE, SHORT_SECONDS

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
"""Where it is busy for more, it decides."""


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

    def covers(self, paces: Sequence[float], gpu: Sequence[float]) -> bool:
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
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Paces over the usual one, and residuals of the GPU: tenth and ninetieth percentile over whole steps, each
    predicted by what never saw it, or never its model. Then both are drawn together until four in five are covered.

    Of steps measured as usual: what ran in a context took up to a tenth longer also where the GPU decides.
    """
    models = sorted({run.job["model"] for run in ordinary})
    paces: dict[str, list[float]] = {}
    spread: dict[str, list[float]] = {}
    for ending, fold_of in (
        ("", lambda index, run: index % FOLDS),
        ("_unseen", lambda index, run: models.index(run.job["model"]) % FOLDS),
    ):
        folds = {id(run): fold_of(index, run) for index, run in enumerate(ordinary)}
        every = _held_out(rows, host, ordinary, matrix, folds, with_models=bool(ending))
        told = [each for each in every if each.run.file not in IN_CONTEXT]
        _tell(f"all{ending}", [each.residual for each in told])
        found = {
            task: [each.pace for each in told if each.share < HOSTED_SHARE and each.run.job["task"] == task]
            for task in TASKS
        }
        busy = [each for each in told if each.share > BUSY_SHARE]
        gpu = {"gpu": [each.residual for each in busy]}
        if not ending:
            gpu["gpu_short"] = [each.residual for each in busy if each.seconds < SHORT_SECONDS]
        for name, values in (
            *gpu.items(),
            *((f"pace of {task}", np.log(each)) for task, each in found.items()),
        ):
            _tell(name + ending, list(values))
        ends = {task: np.quantile(each, (0.1, 0.9)) for task, each in found.items()}
        edges = {name: np.quantile(each, (0.1, 0.9)) for name, each in gpu.items()}
        share, machines = _share_covering(told, ends, edges), _machines(busy)
        print(f"{share:.2f} of both widths cover {COVERED:.0%}; GPUs {machines:.3f} apart")
        paces |= {f"shared_{task}{ending}": [float(v**share) for v in each] for task, each in ends.items()}
        paces |= {f"own_{task}{ending}": each for task, each in _alone(host, told[0].known, ending).items()}
        for name, each in edges.items():
            low, high = (round(hypot(share * float(v), TENTH * machines), 4) for v in each)
            spread[name + ending] = [-low, high]
    return paces, spread


def _alone(host: Sequence[Run], known: Measured, ending: str) -> dict[str, list[float]]:
    """The same of hosts that nobody disturbs, over the costs fitted on the others of them."""
    models = sorted({run.job["model"] for run in host})
    found: dict[str, list[float]] = defaultdict(list)
    replays = [Replay(run, known) for run in host]
    folds = [(models.index(run.job["model"]) if ending else at) % FOLDS for at, run in enumerate(host)]
    for fold in range(FOLDS):
        constants = fit_host([each for each, its in zip(replays, folds, strict=True) if its != fold])
        for replay, its in zip(replays, folds, strict=True):
            seconds, _ = replay.predicted(constants)
            if its == fold and replay.gpu_seconds < HOSTED_SHARE * seconds:
                found[replay.task].append(replay.seconds / seconds)
    for task, ratios in found.items():
        _tell(f"own {task}{ending}", list(np.log(ratios)))
    return {task: [float(v) for v in np.quantile(ratios, (0.1, 0.9))] for task, ratios in found.items()}


TENTH = 1.28
"""Standard deviations from the middle to the tenth and to the ninetieth percentile."""


def _machines(busy: Sequence[Told]) -> float:
    """How far the files lie apart: each was measured at another time, and the next GPU differs from theirs as they do
    from each other. Of hosts the paces tell that already."""
    by_file: dict[str, list[float]] = defaultdict(list)
    for each in busy:
        by_file[each.run.file].append(each.residual)
    return float(np.std([np.mean(each) for each in by_file.values()], ddof=1))


TASKS = ("infer", "train")
COVERED = 0.8


def _share_covering(told: Sequence[Told], ends: dict[str, Array], edges: dict[str, Array]) -> float:
    def covered(share: float) -> float:
        count = 0
        for each in told:
            short = edges.get("gpu_short", edges["gpu"]) if each.seconds < SHORT_SECONDS else edges["gpu"]
            count += each.covers(ends[each.run.job["task"]] ** share, share * short)
        return count / len(told)

    return min(np.arange(0.5, 1.5, 0.02), key=lambda share: (abs(covered(share) - COVERED), share))


def _held_out(
    rows: Sequence[Timed],
    host: Sequence[Run],
    ordinary: Sequence[Run],
    matrix: list[float],
    folds: dict[int, int],
    *,
    with_models: bool,
) -> Iterator[Told]:
    for fold in range(FOLDS):
        out = {run.job["model"] for run in ordinary if folds[id(run)] == fold} if with_models else set()
        fitted = Fitted(
            [row for row in rows if folds[id(row.run)] != fold],
            [run for run in host if run.job["model"] not in out],
            [run for run in ordinary if folds[id(run)] != fold],
            matrix,
        )
        yield from (Told(run, fitted) for run in ordinary if folds[id(run)] == fold)


def _tell(what: str, values: Sequence[float]) -> None:
    errors = np.abs(np.exp(-np.array(values)) - 1)
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    print(
        f"{what}: {len(values)} held out, median error {np.median(errors):.3f}, p90 {np.quantile(errors, 0.9):.3f}; "
        f"{low:+.3f} {middle:+.3f} {high:+.3f}",
        flush=True,
    )
