"""Fits the times of operations on the H200 as curves plus nearby measurements, and the workspaces of convolutions."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec
import numpy as np
import numpy.typing as npt

from lab.evidence import TINY, Run, Timed, tensors
from teraflock.estimate.speed import (
    DOUBT,
    NEAR,
    PEAKS_H200,
    REACH,
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
"""Points up to this distance from a curve, as a logarithm, have full weight."""
ROBUST_TURNS = 6

Array = npt.NDArray[np.float64]


def fit_workspace(rows: Iterable[Timed]) -> dict[str, float]:
    by: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for row in rows:
        if row.images:
            by[f"{row.view.family}:{row.view.dtype}"].append((row.hidden / row.images, row.images))
    # The median over larger operations only: small ones do not affect a peak.
    shares = {}
    for key, points in sorted(by.items()):
        large = [share for share, images in points if images > 8 << 20] or [share for share, _ in points]
        shares[key] = round(median(large), 3)
    return shares


class Placed:
    """One distinct operation of a run with its coordinates, computed once for all folds."""

    def __init__(self, row: Timed) -> None:
        view, precision = row.view, row.run.precision
        floor = floor_seconds(view, PEAKS_H200, tf32=precision == "tf32")
        self.row = row
        self.seconds = max(row.microseconds * 1e-6 - EVENT_SECONDS, 1e-6)
        self.target = float(np.log(self.seconds / max(floor, FLOOR_SECONDS)))
        self.keys = curve_keys(view, precision)
        self.features = features(view, floor)
        self.spot = tuple(round(each, 2) for each in place(view, floor))


def placed(rows: Iterable[Timed]) -> list[Placed]:
    return [Placed(row) for row in rows if row.view.kernel and row.microseconds > 0]


def fit_curves(rows: Sequence[Placed]) -> Measured:
    """Fit curves to the reliable times, then add upper bounds that are below these curves."""
    first = _fit([each for each in rows if not each.row.is_bound])
    return _fit([each for each in rows if not each.row.is_bound or each.seconds < _predicted(each, first)])


def _predicted(each: Placed, known: Measured) -> float:
    return seconds_h200(each.row.view, known, each.row.run.precision)


def _fit(rows: Sequence[Placed]) -> Measured:
    """Curves by key, and the distances of the measured operations from them."""
    by: dict[str, list[Placed]] = defaultdict(list)
    own: dict[str, list[Placed]] = defaultdict(list)
    for each in rows:
        own[each.keys[0]].append(each)
        for key in each.keys:
            by[key].append(each)
    curves: dict[str, list[float]] = {}
    for key, found in sorted(by.items()):
        if len(found) >= POINTS_MIN:
            curves[key], curves[key + "|range"] = curve_of(found)
    points = {
        key: points_near(curves[key], curves[key + "|range"], found)
        for key, found in sorted(own.items())
        if key in curves
    }
    raw = {key: msgspec.Raw(msgspec.json.encode(each)) for key, each in points.items()}
    return Measured({}, curves, raw, {}, 0.0, [], {}, [], {})


def curve_of(found: Sequence[Placed]) -> tuple[list[float], list[float]]:
    """Coefficients, and minimum and maximum of each feature except the first."""
    a = np.array([each.features for each in found])
    b = np.array([each.target for each in found])
    w = np.sqrt([each.seconds for each in found])
    w = np.clip(w / w.max(), 0.05, 1)
    columns = a.shape[1]
    ridge = np.diag([1e-6] + [0.02 * len(found) / columns] * (columns - 1)) * float(np.mean(w**2))
    trust = np.ones(len(found))
    for _ in range(ROBUST_TURNS):  # cuDNN sometimes picks a kernel that is ten times slower; ignore those
        weights = (trust * w**2)[:, None]
        coefficients = np.linalg.solve((a * weights).T @ a + ridge, (a * weights).T @ b)
        trust = np.minimum(1, ROBUST / np.maximum(np.abs(b - a @ coefficients), 1e-9))
    low, high = a.min(axis=0)[1:], a.max(axis=0)[1:]
    bounds = [round(float(v), 3) for pair in zip(low, high, strict=True) for v in pair]
    return [round(float(c), 4) for c in coefficients], bounds


def points_near(
    curve: Sequence[float], bounds: Sequence[float], found: Sequence[Placed]
) -> list[list[float]]:
    inside = np.clip(np.array([each.features[1:] for each in found]), bounds[::2], bounds[1::2])
    above = np.array([each.target for each in found]) - curve[0] - inside @ np.array(curve[1:])
    merged: dict[tuple[float, ...], list[float]] = defaultdict(list)
    for each, value in zip(found, above, strict=True):
        merged[each.spot].append(value)
    spots = np.array(sorted(merged))
    values = np.array([sum(each) / len(each) for _, each in sorted(merged.items())])
    kept = _telling(spots, values)
    return [[*map(float, spots[at]), round(float(values[at]), 2)] for at in kept]


REDUNDANT, NEAR_ENOUGH = 0.15, 0.3
"""As a logarithm. A point that its neighbours predict to within this is dropped, if at least one of them is near. On
held-out steps the estimates are equally good."""


def _telling(spots: Array, values: Array) -> list[int]:
    """Keep each point, in any order, that the points kept so far do not predict."""
    kept: list[int] = []
    near, known = np.zeros_like(spots), np.zeros_like(values)
    for at in np.random.default_rng(0).permutation(len(spots)):
        count = len(kept)
        distance = np.sum((near[:count] - spots[at]) ** 2, axis=1)
        share = np.where(distance < REACH**2, np.exp(-distance / NEAR**2), 0)
        weight = float(np.sum(share))
        if weight < NEAR_ENOUGH or abs(share @ known[:count] / (weight + DOUBT) - values[at]) > REDUNDANT:
            near[count], known[count] = spots[at], values[at]
            kept.append(int(at))
    return sorted(kept)


def fit_matrix(found: Sequence[Run]) -> list[float]:
    """Seconds per matrix product in a batch of many small ones: with one row and column, and with more."""
    each: dict[bool, list[float]] = {False: [], True: []}
    for run in found:
        for name, given, _, _, _, best, _, _ in run.operations:
            if name == "bmm" and max((left := tensors(given)[0][1])[1:]) <= TINY and best > 100:
                each[max(left[1:]) > 1].append(best * 1e-6 / left[0])
    return [float(f"{median(values):.3g}") for values in each.values()]
