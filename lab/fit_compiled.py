"""Fits steps under `torch.compile`: `python -m lab.fit_compiled` prints the numbers of `estimate/compiled.py`.

Reads measured/fit_compiled.jsonl.gz and fit_encoders.jsonl.gz. Rows of generators are left out: their two networks were
called directly, so compiling the module that holds them had no effect. Needs numpy.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.jobs import workload_of
from lab.probe import SHARED_MICROSECONDS
from lab.rows import read_lines
from teraflock.estimate.compiled import CompiledModel
from teraflock.estimate.estimator import Estimator
from teraflock.estimate.host import issued, seconds_of
from teraflock.estimate.speed import PEAKS_H200, seconds_h200, timed_h200
from teraflock.estimate.step import optimizer_works
from teraflock.workload.trace import FUSED

MEASURED = Path(__file__).parent / "measured"
NAMES = ("convolution", "grouped", "fused", "library_seconds", "fused_seconds", "parameter_seconds")
HOST = ("compiled_library", "compiled_fused", "compiled_parameter")
START = (0.5, 1.0, 2.0, 25e-6, 15e-6, 25e-6)
"""Where the search begins, and what a number stays close to if few rows depend on it."""
PULL = 0.02
"""Cost of moving a number away from its start by a factor of e. The error of a row costs as much per factor of e."""


class Row:
    """A measured step as two matrices: seconds of GPU and host for each operation, by number to fit."""

    def __init__(self, found: dict[str, Any]) -> None:
        estimator = Estimator(workload_of(found["job"]))
        scene, known, workload = estimator.scene(), estimator.known, estimator.workload
        self.name, self.measured = f"{workload.model} {workload.task} {workload.precision}", found["median"]
        trains = workload.task == "train"
        lists = optimizer_works(estimator.optimizer, scene) if trains else []
        step = issued(scene, estimator.optimizer, len(lists), compiled=True)
        gpu, host = [], [[known.host["start_forward" if trains else "start_infer"], 0, 0, 0]]
        gpu.append([0.0] * 4)
        for index, group in step.order:
            gpu.append(_gpu(scene.works[index], known, workload.precision))
            host.append(
                [seconds_of(step.groups[group], known.host), *(step.groups[group].get(k, 0) for k in HOST)]
            )
        for each in lists:
            gpu.append([seconds_h200(each, known, workload.precision), 0, 0, 0])
            host.append([seconds_of(step.ending, known.host), 0, 0, 0])
        self.gpu, self.host = np.array(gpu), np.array(host)
        self.pace = known.pace[
            f"{'own' if found['probe'] < SHARED_MICROSECONDS else 'shared'}_{workload.task}"
        ][1]

    def error(self, numbers: Sequence[float]) -> float:
        """Logarithm of measured over estimated time."""
        gpu = self.gpu @ np.array([1.0, *numbers[:3]])
        host = self.pace * np.cumsum(self.host @ np.array([1.0, *numbers[3:]]))
        rest = np.cumsum(gpu[::-1])[::-1]
        return float(np.log(self.measured / max(np.max(host + rest), host[-1])))


def _gpu(work: Any, known: Any, precision: str) -> list[float]:
    """Seconds that no number changes, then those of convolutions, grouped convolutions and fused kernels."""
    if not work.kernel:
        return [0.0] * 4
    if work.name == FUSED:
        return [0, 0, 0, work.bytes / PEAKS_H200.bandwidth]
    marks = CompiledModel(
        **{**dict.fromkeys(NAMES, 0.0), "convolution": 2.0, "grouped": 3.0}, spread=(0.0, 0.0)
    )
    place = int(marks.factor(work)) - 1
    return [timed_h200(work, known, precision)[0] if at == place else 0.0 for at in range(4)]


def fitted(rows: Sequence[Row], start: Sequence[float] = START) -> list[float]:
    """Coordinate search: every number up and down in ever smaller steps."""

    def cost(numbers: Sequence[float]) -> float:
        pull = sum(abs(np.log(a / b)) for a, b in zip(numbers, START, strict=True))
        return sum(abs(row.error(numbers)) for row in rows) + PULL * len(rows) * pull / len(START)

    best, width = list(start), 0.4
    least = cost(best)
    while width > 0.01:
        moved = False
        for at in range(len(best)):
            for scale in (1 + width, 1 / (1 + width)):
                tried = [value * scale if i == at else value for i, value in enumerate(best)]
                if (found := cost(tried)) < least - 1e-9:
                    best, least, moved = tried, found, True
        width = width if moved else width * 0.6
    return best


def compiled_rows(path: Path) -> list[Row]:
    return [Row(each) for each in read_lines(path) if each["job"]["model"] not in ("biggan-128", "dcgan")]


def main() -> None:
    rows = [
        row for name in ("compiled", "encoders") for row in compiled_rows(MEASURED / f"fit_{name}.jsonl.gz")
    ]
    found = fitted(rows)
    errors = []
    for at, row in enumerate(rows):
        errors.append(row.error(fitted([*rows[:at], *rows[at + 1 :]], found)))
        print(f"{row.name:36} {1e3 * row.measured:8.1f} ms, left out: {np.expm1(-errors[-1]):+.0%}")
    off = np.abs(np.expm1(-np.array(errors)))
    print(
        f"{len(rows)} rows, left out: median {np.median(off):.1%}, 90th percentile {np.quantile(off, 0.9):.1%}"
    )
    for name, value in zip(NAMES, found, strict=True):
        print(f"    {name}={value:.3g},")
    low, high = -np.quantile(errors, 0.1), np.quantile(errors, 0.9)
    print(f"    spread=({low:.3f}, {high:.3f}),")


if __name__ == "__main__":
    main()
