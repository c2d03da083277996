"""Judges estimates of scripts by their measurements: `python -m lab.judge_foreign TRACES [SCRIPT …]`.

Traces the measured scripts of tests/corpus, once each; `TRACES` is a folder that keeps the traces. Prints the errors
of the live peak and the step time, by set, and by whether a script was in sight when something was fitted or chosen.
Of those that judge, only the summary is printed, so that nothing is chosen by them. With names of scripts, prints where
their time goes. Needs PyTorch and what the scripts import.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from math import log1p
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from lab.measure_foreign import SCRIPTS
from lab.probe import SHARED_MICROSECONDS
from lab.rows import read_lines
from teraflock.estimate.estimator import Estimator, step_of
from teraflock.estimate.speed import PEAKS_H200, measured, timed_h200
from teraflock.estimate.step import OWN, SHARED
from teraflock.workload.model import Workload
from teraflock.workload.trace import EVENT_KINDS, EventKind

MEASURED = Path(__file__).parent / "measured"
DECLARED = SCRIPTS.parent / "declared"
SETS: Final = (
    "judge_foreign",
    "judge_unseen",
    "judge_ordinary",
    "judge_blind",
    "judge_later_blind",
    "fit_scripts",
)
FITTED: Final = ("fit_foreign", "fit_scripts", "fit_scripts_more")
IN_SIGHT: Final = frozenset({"lstm_lm", "speech_ctc", "char_lstm", "lstm_forecast"})
"""Recurrent layers were chosen with these. `lab/fit_foreign.py` fits on the scripts of `FITTED`."""
SPLIT: Final = "step times"
"""Half of the other scripts may be used to fit what their step times show: a hash of this and their name decides."""


def part_of(name: str, fitted: Collection[str]) -> str:
    """Whether the step time of a script is there to fit or to judge."""
    drawn = hashlib.sha256(f"{SPLIT} {name}".encode()).digest()[0] % 2
    return "fit" if name in fitted or not drawn else "judge"


def traced(name: str, folder: Path) -> Path | None:
    """A trace that is already in the folder is used again: name a new folder after a change of the tracer."""
    out = folder / f"{name}.trace"
    if out.exists():
        return out
    with tempfile.TemporaryDirectory() as place:
        for each in SCRIPTS.glob("*.py"):
            shutil.copy(each, place)
        done = subprocess.run(
            [sys.executable, "-m", "teraflock", "trace", f"{name}.py", "-o", str(out.resolve())],
            cwd=place, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(DECLARED)},
        )  # fmt: skip
    (folder / f"{name}.txt").write_text(done.stderr)
    return out if done.returncode == 0 else None


def estimator_of(row: dict[str, Any], trace: Path) -> Estimator:
    return Estimator(Workload(model=str(trace), batch=0, compile=bool(row["job"].get("compile"))))


class Judged:
    """A measured script with its estimate."""

    def __init__(self, file: str, part: str, row: dict[str, Any], trace: Path) -> None:
        made = estimator_of(row, trace)
        self.file, self.part, self.row = file, part, row
        self.name: str = row["job"]["model"]
        self.live = made.memory().live_peak_bytes / row["live"] - 1
        self.is_timed = not row["job"].get("untimed")
        self.is_disturbed = row["probe"] >= SHARED_MICROSECONDS
        self.step = step_of(made, made.scene(), host=SHARED)

    @property
    def key(self) -> str:
        return f"{self.file} {self.part}"

    def error(self, pace: float | None) -> float:
        """Of the step time, for a known pace of the host or for a shared one."""
        gpu = self.step.gpu_seconds(PEAKS_H200)
        return self.step.seconds_where_gpu_takes(gpu, pace) / self.row["median"] - 1


PACES: Final = [0.7 + 0.05 * each for each in range(27)]


def paces_of(found: Sequence[Judged]) -> dict[tuple[str, bool], float]:
    """The pace of each machine while disturbed and while not: the one with which its scripts to fit come out best."""
    by: defaultdict[tuple[str, bool], list[Judged]] = defaultdict(list)
    for each in found:
        if each.part == "fit" and each.is_timed:
            by[each.file, each.is_disturbed].append(each)
    return {
        key: min(PACES, key=lambda pace: sum(abs(log1p(each.error(pace))) for each in rows))
        for key, rows in by.items()
    }


def said(errors: Sequence[float]) -> str:
    sizes = sorted(abs(each) for each in errors)
    if len(sizes) < 2:
        return "-"
    return f"{median(sizes):7.2%} {quantiles(sizes, n=10, method='inclusive')[8]:7.1%}"


def explain(row: dict[str, Any], trace: Path) -> None:
    """The operations that take most of the GPU's time."""
    made = estimator_of(row, trace)
    scene, precision = made.scene(), made.workload.precision
    operated = (event for event in scene.step if event % EVENT_KINDS == EventKind.OPERATE)
    counts = Counter(event // EVENT_KINDS for event in operated)
    seconds: defaultdict[str, float] = defaultdict(float)
    for index, each in enumerate(scene.works):
        if each.kernel and counts[index]:
            alone, near = timed_h200(each, measured(), precision)
            key = f"{each.name:34} {each.family:14} {each.dtype} {[round(d) for d in each.dims]} ×{counts[index]}"
            seconds[f"{key} near {near:.1f}"] += counts[index] * alone
    host = step_of(made, scene, host=OWN).host_seconds
    print(
        f"{row['job']['model']}: GPU {sum(seconds.values()) * 1e3:.2f} ms, undisturbed host {host * 1e3:.2f} ms,"
        f" measured {row['median'] * 1e3:.2f} ms"
    )
    for key, total in sorted(seconds.items(), key=lambda each: -each[1])[:25]:
        print(f"  {total * 1e3:9.3f} ms  {key}")


def read(folder: Path, names: list[str]) -> list[Judged]:
    fitted = IN_SIGHT.union(
        row["job"]["model"] for file in FITTED for row in read_lines(MEASURED / f"{file}.jsonl.gz")
    )
    found = []
    for file in SETS:
        for row in read_lines(MEASURED / f"{file}.jsonl.gz"):
            name = row["job"]["model"]
            if names and name not in names:
                continue
            trace = traced(name, folder)
            if trace is None:
                print(f"{file} {name}: refused")
                continue
            if names:
                explain(row, trace)
            found.append(Judged(file, part_of(name, fitted), row, trace))
    return found


def main(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    found = read(folder, names)
    paces = paces_of(found)
    for (file, is_disturbed), known_pace in sorted(paces.items()):
        print(f"{file}: pace {known_pace:.2f} while {'disturbed' if is_disturbed else 'undisturbed'}")
    errors = {
        id(each): (each.error(paces.get((each.file, each.is_disturbed))), each.error(None))
        for each in found
        if each.is_timed
    }
    for key in sorted({each.key for each in found}):
        rows = [each for each in found if each.key == key]
        within = sum(abs(each.live) <= 0.03 for each in rows)
        known, unknown = zip(*(errors[id(each)] for each in rows if each.is_timed), strict=True)
        print(f"{key:22} live {said([each.live for each in rows])}, {within} of {len(rows)} within 3 %;"
              f" step {said(known)}, host unknown {said(unknown)}")  # fmt: skip
    shown = [each for each in found if each.is_timed and (names or each.part == "fit")]
    for each in sorted(shown, key=lambda each: -abs(errors[id(each)][0])):
        timed, untimed = errors[id(each)]
        print(f"{each.key:22} {each.name:20} live {each.live:+8.2%}  step {timed:+8.1%} {untimed:+8.1%}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
