"""Fits what `estimate/` knows of the H200: `python -m recording.fit` writes estimate/data/h200.json.

It reads `recording/measured/fit.jsonl.gz` and, for what does not occur there (kinds of operations, generators,
optimizers that wait at every parameter), `fit_more.jsonl.gz`; the files named judge are never opened here. Needs numpy.
"""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from teraflock.base.errors import BadInput
from teraflock.estimate.memory import Scene
from teraflock.estimate.operation import Shaped, Work, work
from teraflock.estimate.speed import PEAKS_H200, Measured, curve_keys, features, floor_seconds, place
from teraflock.estimate.step import SERIAL, StepWork
from teraflock.workload.model import Workload
from teraflock.workload.trace import DTYPE_BYTES
from teraflock.workload.zoo import symbols_for, trace_for

HERE = Path(__file__).parent
OUT = HERE.parent / "src/teraflock/estimate/data/h200.json"
TENSOR = re.compile(r"^([a-z?])([TC]?)\[([\d,]*)\]$")
GROUP = re.compile(r"^([a-z?])\*(\d+):(\d+)$")
POINTS_MIN = 6


def all_jobs(name: str = "fit") -> Iterator[dict[str, Any]]:
    with gzip.open(HERE / f"measured/{name}.jsonl.gz", "rt") as lines:
        for line in lines:
            job = json.loads(line)
            if "median" in job:
                yield job


def jobs(name: str) -> Iterator[dict[str, Any]]:
    return (job for job in all_jobs(name) if "ops" in job)


def tensors(text: str) -> list[Shaped]:
    found: list[Shaped] = []
    for word in text.split(" "):
        word = word.split("=")[-1]
        if match := TENSOR.match(word):
            found.append((match[1], [int(n) for n in match[3].split(",") if n], match[2] == ""))
        elif match := GROUP.match(word):
            found.append((match[1], [int(match[3])], True))
    return found


def attributes(name: str, text: str) -> list[int]:
    if not name.startswith("convolution"):
        return []
    words = text.split(" ")
    at = 4 if name == "convolution_backward" else 3
    first = [int(words[at + i].strip("()").split(",")[0]) for i in range(3)]
    groups = int(words[at + 5])
    mask = (
        [int(w == "True") for w in words[at + 6].strip("()").split(",")]
        if name == "convolution_backward"
        else []
    )
    return [*first, int(words[at + 3] == "True"), groups, *mask]


Operation = tuple[Work, float, int, str, int, str]
Operations = list[Operation]


def measured() -> Operations:
    """Each distinct operation: its view, microseconds, hidden bytes, precision, bytes of images, model."""
    found = list(_measured("fit"))
    known = {curve_keys(row[0], tf32=False)[0] for row in found}
    more = (row for row in _measured("fit_more") if curve_keys(row[0], tf32=False)[0] not in known)
    return [*found, *more]


def _measured(file: str) -> Iterator[Operation]:
    for job in jobs(file):
        for name, given, made, count, total, _, peak, kept in job["ops"]:
            if name.startswith("profiler"):
                continue
            name = name if name.startswith(("sum.", "mul.", "div.", "add.")) else name.split(".")[0]
            inputs, outputs = tensors(given), tensors(made)
            if not (inputs or outputs):
                continue
            if name.startswith("_foreach"):
                outputs = []
            view = work(name, inputs, outputs, attributes(name, given))
            images = 0
            if name.startswith("convolution"):
                sizes = [int(np.prod(s)) * DTYPE_BYTES[d] for d, s, _ in inputs]
                out = [int(np.prod(s)) * DTYPE_BYTES[d] for d, s, _ in outputs]
                images = (
                    sizes[0] + sizes[1] + 2 * sizes[2]
                    if name.endswith("backward")
                    else sizes[0] + out[0] + 2 * sizes[1]
                )
            yield (
                view,
                total / count,
                peak - max(kept, 0),
                job["job"]["precision"],
                images,
                job["job"]["model"],
            )


def fit_workspace(rows: Operations) -> dict[str, float]:
    by: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for view, _, hidden, _, images, _ in rows:
        if view.family.startswith("conv") and images:
            by[f"{view.family}:{view.dtype}"].append((hidden / images, images))
    # A median over operations of some size: small ones do not decide a peak.
    shares = {}
    for key, points in sorted(by.items()):
        large = [share for share, images in points if images > 8 << 20] or [share for share, _ in points]
        shares[key] = round(median(large), 3)
    return shares


def fit_time(
    rows: Operations,
) -> tuple[dict[str, list[float]], dict[str, list[list[float]]]]:
    by: dict[str, list[tuple[list[float], float, float]]] = defaultdict(list)
    spots: dict[str, list[tuple[tuple[float, ...], float, list[float]]]] = defaultdict(list)
    for view, microseconds, _, precision, _, _ in rows:
        if not view.kernel or microseconds <= 0:
            continue
        tf32 = precision == "tf32"
        floor = floor_seconds(view, PEAKS_H200, tf32=tf32)
        seconds = max(microseconds * 1e-6 - EVENT_SECONDS, 1e-6)
        target = np.log(seconds / max(floor, FLOOR_SECONDS))
        weight = np.sqrt(seconds)
        spots[curve_keys(view, tf32=tf32)[0]].append(
            (place(view, floor), float(target), features(view, floor))
        )
        for key in curve_keys(view, tf32=tf32):
            by[key].append((features(view, floor), float(target), float(weight)))
    curves = {}
    for key, points in sorted(by.items()):
        if len(points) < POINTS_MIN:
            continue
        a = np.array([p[0] for p in points])
        b = np.array([p[1] for p in points])
        w = np.array([p[2] for p in points])
        w = np.clip(w / w.max(), 0.05, 1)
        columns = a.shape[1]
        ridge = np.diag([1e-6] + [0.02 * len(points) / columns] * (columns - 1)) * float(np.mean(w**2))
        coefficients = np.linalg.solve((a * w[:, None] ** 2).T @ a + ridge, (a * w[:, None] ** 2).T @ b)
        curves[key] = [round(float(c), 4) for c in coefficients]
        low, high = a.min(axis=0)[1:], a.max(axis=0)[1:]
        curves[key + "|range"] = [round(float(v), 3) for pair in zip(low, high, strict=True) for v in pair]
    points = {}
    for key, found in sorted(spots.items()):
        if key not in curves:
            continue
        merged: dict[tuple[float, ...], list[float]] = defaultdict(list)
        for spot, target, row in found:
            inside = [
                min(max(v, lo), hi)
                for v, lo, hi in zip(
                    row[1:], curves[key + "|range"][::2], curves[key + "|range"][1::2], strict=True
                )
            ]
            residual = target - curves[key][0] - float(np.dot(curves[key][1:], inside))
            merged[tuple(round(v, 2) for v in spot)].append(residual)
        points[key] = [[*spot, round(float(np.mean(r)), 2)] for spot, r in sorted(merged.items())]
    return curves, points


EVENT_SECONDS = 1.5e-6
FLOOR_SECONDS = 1e-6


def scene_of(job: dict[str, Any]) -> Scene:
    spec = job["job"]
    workload = Workload(
        model=spec["model"], task=spec["task"], batch=spec["batch"], seq=spec["seq"], image_size=spec["px"],
        precision=spec["precision"], optimizer=spec["optimizer"] or "sgd",
        gradient_checkpointing=bool(spec["ckpt"]), lora_rank=spec["lora"] or None,
    )  # fmt: skip
    trace = trace_for(workload)
    return Scene(trace, symbols_for(workload, trace), {})


def with_scenes(name: str) -> Iterator[tuple[dict[str, Any], Scene]]:
    for job in all_jobs(name):
        try:
            yield job, scene_of(job)
        except BadInput as error:
            print("left out:", error.sentence)


def fit_host(found: list[tuple[dict[str, Any], Scene]]) -> list[float]:
    """Seconds of host time per operation, per view, and per parameter tensor, over runs the host decided."""
    a, b = [], []
    for job, scene in found:
        gpu = sum(op[4] for op in job["ops"]) * 1e-6 if "ops" in job else 0.0
        if gpu > 0.8 * job["median"]:
            continue
        operations = sum(1 for _ in scene.step_works())
        trained = sum(p.trainable for p in scene.trace.parameters) if scene.trace.has_backward else 0
        a.append([operations, scene.trace.views, trained])
        b.append(job["median"])
    x, y = np.array(a, float), np.array(b)
    from itertools import combinations

    best: tuple[float, list[float]] = (1e9, [3e-5, 5e-6, 3e-5])
    for size in (3, 2, 1):  # least squares with no negative rate: few columns, so every subset is tried
        for columns in combinations(range(3), size):
            part = x[:, columns] / y[:, None]
            solution, *_ = np.linalg.lstsq(part, np.ones_like(y), rcond=None)
            error = float(np.sum((part @ solution - 1) ** 2))
            if (solution >= 0).all() and error < best[0]:
                full = [0.0, 0.0, 0.0]
                for column, value in zip(columns, solution, strict=True):
                    full[column] = round(float(value), 9)
                best = (error, full)
    return best[1]


def fit_serial(found: list[tuple[dict[str, Any], Scene]], data: dict[str, Any]) -> float:
    """What is left of steps whose optimizer waits at every parameter, per parameter."""
    left = [
        (job["median"] - seconds) / sum(p.trainable for p in scene.trace.parameters)
        for job, scene, seconds in _estimated(found, data)
        if job["job"]["optimizer"] in SERIAL
    ]
    print("seconds per parameter, serial:", [round(each * 1e6) for each in left], "microseconds")
    return round(median(left), 7)


def fit_drag(found: list[tuple[dict[str, Any], Scene]], data: dict[str, Any]) -> list[float]:
    """How much longer the steps of generators take than their operations tell, and how far that scatters."""
    ratios = [
        job["median"] / seconds
        for job, _, seconds in _estimated(found, data)
        if job["job"]["optimizer"] not in SERIAL
    ]
    print("generators, measured over estimated:", [round(each, 2) for each in ratios])
    middle = median(ratios)
    return [round(middle, 3), round(float(np.mean([abs(np.log(each / middle)) for each in ratios])), 3)]


def _estimated(
    found: list[tuple[dict[str, Any], Scene]], data: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], Scene, float]]:
    known = Measured({}, data["time"], data["points"], data["host"], 0.0, (1.0, 0.0), {})
    for job, scene in found:
        step = StepWork(scene, job["job"]["optimizer"], known, tf32=job["job"]["precision"] == "tf32")
        yield job, scene, step.seconds(PEAKS_H200)


FOLDS = 6


def fit_spread(
    rows: Operations, found: list[tuple[dict[str, Any], Scene]], data: dict[str, Any]
) -> dict[str, list[float]]:
    """Residuals of whole steps, each predicted by curves that never saw its model."""
    models = sorted({job["job"]["model"] for job, _ in found})
    residuals: dict[str, list[float]] = {"gpu": [], "host": []}
    for fold in range(FOLDS):
        held = set(models[fold::FOLDS])
        curves, points = fit_time([row for row in rows if row[-1] not in held])
        host = fit_host([each for each in found if each[0]["job"]["model"] not in held])
        known = Measured({}, curves, points, host, 0.0, (1.0, 0.0), {})
        for job, scene in found:
            if job["job"]["model"] in held:
                step = StepWork(scene, job["job"]["optimizer"], known, tf32=job["job"]["precision"] == "tf32")
                hosted = step.host_seconds > 0.8 * step.gpu_seconds(PEAKS_H200)
                residuals["host" if hosted else "gpu"].append(
                    float(np.log(job["median"] / step.seconds(PEAKS_H200)))
                )
    for kind, values in residuals.items():
        print(
            kind,
            len(values),
            "held-out error: median",
            round(float(np.median(np.abs(values))), 3),
            "p90",
            round(float(np.quantile(np.abs(values), 0.9)), 3),
        )
    return {
        kind: [round(float(np.quantile(values, q)), 4) for q in (0.1, 0.9)]
        for kind, values in residuals.items()
    }


def main() -> None:
    rows = measured()
    found = list(with_scenes("fit"))
    curves, points = fit_time(rows)
    data: dict[str, Any] = {
        "workspace": fit_workspace(rows),
        "time": curves,
        "points": points,
        "host": fit_host(found),
    }
    more = list(with_scenes("fit_more"))
    data["serial"], data["drag"] = fit_serial(more, data), fit_drag(more, data)
    data["spread"] = fit_spread(rows, found, data)
    OUT.write_text(json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n")
    print(len(rows), "operations", len(data["time"]) // 2, "curves; host", data["host"], data["spread"])


if __name__ == "__main__":
    main()
