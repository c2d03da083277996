"""Fits how long operations take on the H200, as curves and the nearest of them, and what memory convolutions take."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec
import numpy as np

from recording.evidence import TINY, Run, Timed, tensors
from teraflock.estimate.speed import (
    PEAKS_H200,
    Measured,
    curve_keys,
    features,
    floor_seconds,
    place,
    seconds_h200,
)

POINTS_MIN = 6
EVENT_SECONDS = 1.5e-6
FLOOR_SECONDS = 1e-6
ROBUST = 0.4
"""How far off a curve, as a logarithm, a point still counts in full."""
ROBUST_TURNS = 6


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
    return Measured({}, curves, raw, {}, 0.0, [], {}, [])


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
    trust = np.ones(len(points))
    for _ in range(
        ROBUST_TURNS
    ):  # what cuDNN picks now and then is ten times as slow, and says nothing of others
        weights = (trust * w**2)[:, None]
        coefficients = np.linalg.solve((a * weights).T @ a + ridge, (a * weights).T @ b)
        trust = np.minimum(1, ROBUST / np.maximum(np.abs(b - a @ coefficients), 1e-9))
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
