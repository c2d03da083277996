"""Fits what `estimate/` knows of the H200: `python -m recording.fit` writes estimate/data/h200.json.

It reads the files of `recording/measured/` named fit; those named judge are never opened. Needs numpy.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from math import hypot
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from recording.evidence import IN_CONTEXT, TINY, Run, Timed, host_runs, operations, row_runs, runs, tensors
from recording.fit_host import KINDS, PACES, Array, Replay, fit_host
from teraflock.estimate.speed import (
    PEAKS_H200,
    Measured,
    curve_keys,
    features,
    floor_seconds,
    place,
    seconds_h200,
)
from teraflock.estimate.step import SHORT_SECONDS

OUT = Path(__file__).parent.parent / "src/teraflock/estimate/data/h200.json"
POINTS_MIN = 6
EVENT_SECONDS = 1.5e-6
FLOOR_SECONDS = 1e-6
FOLDS = 8


def fit_workspace(rows: Iterable[Timed]) -> dict[str, float]:
    by: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for row in rows:
        if row.images:
            by[f"{row.view.family}:{row.view.dtype}"].append((row.hidden / row.images, row.images))
    # A median over operations of some size: small ones do not decide a peak.
    shares = {}
    for key, points in sorted(by.items()):
        large = [share for share, images in points if images > 8 << 20] or [share for share, _ in points]
        shares[key] = round(median(large), 3)
    return shares


def fit_curves(rows: Sequence[Timed]) -> Measured:
    """Curves over what can be believed; then also over what was faster than these say, however late its host."""
    first = _as_measured(*fit_time([row for row in rows if not row.is_bound]))
    return _as_measured(
        *fit_time([row for row in rows if not row.is_bound or _seconds(row) < _predicted(row, first)])
    )


def _seconds(row: Timed) -> float:
    return max(row.microseconds * 1e-6 - EVENT_SECONDS, 1e-6)


def _predicted(row: Timed, known: Measured) -> float:
    return seconds_h200(row.view, known, row.run.precision) if row.view.kernel else 0.0


def _as_measured(curves: dict[str, list[float]], points: dict[str, list[list[float]]]) -> Measured:
    raw = {key: msgspec.Raw(msgspec.json.encode(each)) for key, each in points.items()}
    return Measured({}, curves, raw, {}, 0.0, [], {}, {})


Points = list[tuple[list[float], float, float]]
"""Features, logarithm of time over floor, weight."""
Curves = dict[str, list[float]]


def fit_time(rows: Sequence[Timed]) -> tuple[Curves, dict[str, list[list[float]]]]:
    """Curves by key, and what the operations nearest to a spot lie above them."""
    by: dict[str, Points] = defaultdict(list)
    spots: dict[str, list[tuple[tuple[float, ...], float, list[float]]]] = defaultdict(list)
    for row in rows:
        view, precision = row.view, row.run.precision
        if not view.kernel or row.microseconds <= 0:
            continue
        floor = floor_seconds(view, PEAKS_H200, tf32=precision == "tf32")
        target = float(np.log(_seconds(row) / max(floor, FLOOR_SECONDS)))
        found = features(view, floor)
        keys = curve_keys(view, precision)
        spots[keys[0]].append((place(view, floor), target, found))
        for key in keys:
            by[key].append((found, target, float(np.sqrt(_seconds(row)))))
    curves: Curves = {}
    for key, points in sorted(by.items()):
        if len(points) >= POINTS_MIN:
            curves[key], curves[key + "|range"] = _curve(points)
    near = {key: _near(curves, key, found) for key, found in sorted(spots.items()) if key in curves}
    return curves, near


def _curve(points: Points) -> tuple[list[float], list[float]]:
    """Coefficients, and least and most of each feature but the first."""
    a = np.array([each[0] for each in points])
    b = np.array([each[1] for each in points])
    w = np.array([each[2] for each in points])
    w = np.clip(w / w.max(), 0.05, 1)
    columns = a.shape[1]
    ridge = np.diag([1e-6] + [0.02 * len(points) / columns] * (columns - 1)) * float(np.mean(w**2))
    coefficients = np.linalg.solve((a * w[:, None] ** 2).T @ a + ridge, (a * w[:, None] ** 2).T @ b)
    low, high = a.min(axis=0)[1:], a.max(axis=0)[1:]
    bounds = [round(float(v), 3) for pair in zip(low, high, strict=True) for v in pair]
    return [round(float(c), 4) for c in coefficients], bounds


def _near(
    curves: Curves, key: str, found: Sequence[tuple[tuple[float, ...], float, list[float]]]
) -> list[list[float]]:
    curve, bounds = curves[key], curves[key + "|range"]
    merged: dict[tuple[float, ...], list[float]] = defaultdict(list)
    for spot, target, row in found:
        inside = [
            min(max(value, low), high)
            for value, low, high in zip(row[1:], bounds[::2], bounds[1::2], strict=True)
        ]
        merged[tuple(round(v, 2) for v in spot)].append(target - curve[0] - float(np.dot(curve[1:], inside)))
    return [[*spot, round(float(np.mean(each)), 2)] for spot, each in sorted(merged.items())]


def fit_matrix(found: Sequence[Run]) -> list[float]:
    """Seconds for each of many tiny matrix products at once: of one row and column, and of more."""
    each: dict[bool, list[float]] = {False: [], True: []}
    for run in found:
        for name, given, _, _, _, best, _, _ in run.operations:
            if name == "bmm" and max((left := tensors(given)[0][1])[1:]) <= TINY and best > 100:
                each[max(left[1:]) > 1].append(best * 1e-6 / left[0])
    return [float(f"{median(values):.3g}") for values in each.values()]


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
HOSTED_SHARE = 0.75
"""Where the GPU is busy for less of a step than this, the host decides, and its pace can be told."""
BUSY_SHARE = 0.9
"""Where it is busy for more, it decides."""


class Told:
    """A run as it was predicted by what never saw it."""

    def __init__(self, run: Run, fitted: Fitted) -> None:
        replay = fitted.replay(run)
        self.run, self.replay, self.paces = run, replay, fitted.paces
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
        paces |= {task + ending: [float(v**share) for v in each] for task, each in ends.items()}
        for name, each in edges.items():
            low, high = (round(hypot(share * float(v), TENTH * machines), 4) for v in each)
            spread[name + ending] = [-low, high]
    return paces, spread


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


def main() -> None:
    found, host = runs(), host_runs()
    ordinary = [*found, *row_runs()]
    rows = [row for run in found for row in operations(run)]
    matrix = fit_matrix(found)
    fitted = Fitted(rows, host, ordinary, matrix)
    costs = {kind: float(f"{value:.3g}") for kind, value in zip(KINDS, fitted.constants, strict=True)}
    usual = dict(zip(PACES, map(float, fitted.paces), strict=True))
    costs |= {kind: float(f"{usual[kind] / usual['train']:.3g}") for kind in ("context", "context_parameter")}
    print(costs, usual)
    paces, spread = fit_width(rows, host, ordinary, matrix)
    data = {
        "workspace": fit_workspace(row for row in rows if row.run.file == "fit"),
        "time": fitted.known.time,
        "points": {key: msgspec.json.decode(each) for key, each in fitted.known.points.items()},
        "serial": costs.pop("serial"),
        "host": costs,
        "matrix": matrix,
        "pace": {
            key: [round(usual[key.split("_")[0]] * each, 3) for each in (low, 1, high)]
            for key, (low, high) in paces.items()
        },
        "spread": spread,
    }
    OUT.write_text(json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n")
    print(
        len(ordinary),
        "runs,",
        len(host),
        "of the host,",
        len(rows),
        "operations,",
        len(fitted.known.time) // 2,
        "curves",
    )


if __name__ == "__main__":
    main()
