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
from collections.abc import Collection
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
SETS: Final = ("judge_foreign", "judge_unseen", "judge_ordinary")
IN_SIGHT: Final = frozenset({"lstm_lm", "speech_ctc", "char_lstm", "lstm_forecast"})
"""Recurrent layers were chosen with these, and `lab/fit_foreign.py` fits on the scripts of its file."""
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


def judged(row: dict[str, Any], trace: Path) -> tuple[float, float, float]:
    """Error of the live peak, and of the step time with the host's state known and without."""
    made = estimator_of(row, trace)
    live = made.memory().live_peak_bytes / row["live"] - 1
    own = OWN if row["probe"] < SHARED_MICROSECONDS else SHARED
    known, plain = (step_of(made, made.scene(), host=host).seconds(PEAKS_H200) for host in (own, SHARED))
    return live, known / row["median"] - 1, plain / row["median"] - 1


def said(errors: list[float]) -> str:
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


def main(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    fitted = IN_SIGHT | {row["job"]["model"] for row in read_lines(MEASURED / "fit_foreign.jsonl.gz")}
    found: list[tuple[str, str, float, float, float | None, float | None]] = []
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
            live, known, plain = judged(row, trace)
            timed = not row["job"].get("untimed")
            part = part_of(name, fitted)
            found.append(
                (f"{file} {part}", name, live, row["live"], *((known, plain) if timed else (None, None)))
            )
    for key in sorted({each[0] for each in found}):
        rows = [each for each in found if each[0] == key]
        within = sum(abs(each[2]) <= 0.03 for each in rows)
        print(f"{key:22} live {said([each[2] for each in rows])}, {within} of {len(rows)} within 3 %;"
              f" step {said([each[4] for each in rows if each[4] is not None])},"
              f" host unknown {said([each[5] for each in rows if each[5] is not None])}")  # fmt: skip
    shown = [each for each in found if names or each[0].endswith("fit")]
    for key, name, live, _, own, shared in sorted(shown, key=lambda each: -abs(each[4] or 0)):
        time = f"{own:+8.1%} {shared:+8.1%}" if own is not None and shared is not None else ""
        print(f"{key:22} {name:20} live {live:+8.2%}  step {time}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
