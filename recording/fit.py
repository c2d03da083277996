"""Fits what `estimate/` knows of the H200: `python -m recording.fit` writes estimate/data/h200.json.

It reads the files of `recording/measured/` named fit; those named judge are never opened. Needs numpy.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import hypot
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from recording.evidence import TINY, WIDTH_FILES, Run, Timed, operations, runs, tensors, width_runs
from recording.fit_host import KINDS, Array, Replay, fit_host
from teraflock.estimate.speed import (
    PEAKS_H200,
    Measured,
    curve_keys,
    features,
    floor_seconds,
    place,
    seconds_h200,
)
from teraflock.estimate.step import HOSTED_SHARE, regimes

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
    return Measured({}, curves, raw, {}, 0.0, 0.0, {})


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


def fit_matrix(found: Sequence[Run]) -> float:
    """Seconds for each of many tiny matrix products at once."""
    each = []
    for run in found:
        for name, given, _, _, _, best, _, _ in run.operations:
            if name == "bmm" and max((left := tensors(given)[0][1])[1:]) <= TINY and best > 100:
                each.append(best * 1e-6 / left[0])
    return round(float(median(each)), 13)


def fit_all(rows: Sequence[Timed], found: Sequence[Run], matrix: float) -> tuple[Measured, Array]:
    known = fit_curves(rows)
    return known, fit_host([Replay(run, known, matrix) for run in found])


def fit_spread(
    rows: Sequence[Timed], found: Sequence[Run], later: Sequence[Run], matrix: float
) -> dict[str, list[float]]:
    """Residuals of whole steps, each predicted by curves and constants that never saw it; or never its model.

    Each file was measured at another time, and the next machine differs from theirs as they do from each other.
    """
    judged = [*found, *later]
    models = sorted({run.job["model"] for run in judged})
    by_run = {id(run): index % FOLDS for index, run in enumerate(judged)}
    by_model = {id(run): models.index(run.job["model"]) % FOLDS for run in judged}
    spread = {}
    for is_seen, folds in ((True, by_run), (False, by_model)):
        residuals: dict[str, list[float]] = defaultdict(list)
        by_file: dict[str, list[float]] = defaultdict(list)
        for run, kind, predicted in _held_out(rows, found, judged, matrix, folds):
            residual = float(np.log(run.seconds / predicted))
            own, *more = regimes(kind, predicted, infers=not run.scene.trace.has_backward)
            for name in more if is_seen else ():
                residuals[name].append(residual)
            if run.file not in WIDTH_FILES:
                residuals[own if is_seen else f"{kind}_unseen"].append(residual)
                by_file[run.file].append(residual)
        machines = float(np.std([np.mean(each) for each in by_file.values()], ddof=1))
        for name, values in sorted(residuals.items()):
            low, high = (float(np.quantile(values, q)) for q in (0.1, 0.9))
            doubt = machines * TENTH
            spread[name] = [round(-hypot(min(low, 0), doubt), 4), round(hypot(max(high, 0), doubt), 4)]
            _tell(name, values)
        _tell(f"all, machines {machines:.3f} apart", [each for values in by_file.values() for each in values])
    return spread


TENTH = 1.28
"""Standard deviations from the middle to the tenth and to the ninetieth percentile."""


def _held_out(
    rows: Sequence[Timed], found: Sequence[Run], judged: Sequence[Run], matrix: float, folds: dict[int, int]
) -> Iterator[tuple[Run, str, float]]:
    """Each run with what decides, and its seconds as predicted by those of `found` that are in other folds."""
    for fold in range(FOLDS):
        known, constants = fit_all(
            [row for row in rows if folds[id(row.run)] != fold],
            [run for run in found if folds[id(run)] != fold],
            matrix,
        )
        for run in judged:
            if folds[id(run)] == fold:
                replay = Replay(run, known, matrix)
                seconds, _ = replay.predicted(constants)
                yield run, "host" if replay.gpu_seconds < HOSTED_SHARE * seconds else "gpu", seconds


def _tell(what: str, values: Sequence[float]) -> None:
    errors = np.abs(np.exp(-np.array(values)) - 1)
    print(
        f"{what}: {len(values)} held out, median error {np.median(errors):.3f}, p90 {np.quantile(errors, 0.9):.3f}",
        flush=True,
    )


def main() -> None:
    found = runs()
    rows = [row for run in found for row in operations(run)]
    matrix = fit_matrix(found)
    known, constants = fit_all(rows, found, matrix)
    host = {kind: float(f"{value:.3g}") for kind, value in zip(KINDS, constants, strict=True)}
    print(host)
    serial = host.pop("serial")
    data = {
        "workspace": fit_workspace(row for row in rows if row.run.file == "fit"),
        "time": known.time,
        "points": {key: msgspec.json.decode(each) for key, each in known.points.items()},
        "host": host,
        "serial": serial,
        "matrix": matrix,
        "spread": fit_spread(rows, found, width_runs(), matrix),
    }
    OUT.write_text(json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n")
    print(len(found), "runs,", len(rows), "operations,", len(known.time) // 2, "curves")


if __name__ == "__main__":
    main()
