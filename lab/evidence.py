"""The measurements to fit on: runs, their scenes, and the operations whose times are reliable.

This module never opens files named `judge*`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lab.jobs import workload_of
from lab.probe import UNDISTURBED_MICROSECONDS
from lab.rows import as_job, read_lines, read_rows
from teraflock.base.errors import BadInput
from teraflock.estimate.memory import Scene
from teraflock.estimate.operation import Shaped, Work, work
from teraflock.workload.trace import DTYPE_BYTES
from teraflock.workload.zoo import symbols_for, trace_for

MEASURED = Path(__file__).parent / "measured"
FILES = ("fit", "fit_more", "fit_drawn", "fit_later", "fit_wide")
ROW_FILES = ("fit_blind", "fit_drawn_rows", "fit_fresh_rows")
"""Steps without operations, used only for the pace of hosts and the width of the interval."""
HOST_FILE = "fit_host"
IN_CONTEXT = ("fit_more", "fit_drawn", "fit_blind", "fit_drawn_rows")
"""Steps that ran under `with torch.device("cuda")`, which intercepts every Python call."""
TENSOR = re.compile(r"^([a-z?])([TC]?)\[([\d,]*)\]$")
GROUP = re.compile(r"^([a-z?])\*(\d+):(\d+)$")
STEADY = {2: 1.03, 3: 1.15}
"""The highest ratio of mean to best time of an operation, by how often it ran. Above it, the GPU waited for the host.
"""
LATE = ("fit_more", "fit_drawn")
"""Files in which the GPU sometimes waited for the host. In the first it is unknown when: it has only best times."""
SKIPPED = (
    "profiler",
    "_local_scalar_dense",
    "_foreach_sqrt",
    "_native_multi_head_attention",
    "matmul",
    "linear",
)
"""Operations that do not run on the GPU, whose time includes a hundred allocations by the host, or that combine several
operations."""
LONG_MICROSECONDS = 1000
"""Longer than the host needs for any single operation."""
TINY = 8


class Run:
    """One measured step with its scene."""

    def __init__(self, file: str, row: dict[str, Any], scene: Scene) -> None:
        self.file = file
        self.job = row["job"]
        self.seconds: float = row["median"]
        self.scene = scene
        self.operations = row.get("ops", [])

    @property
    def precision(self) -> str:
        return str(self.job["precision"])


class Timed:
    """One distinct operation of a run: microseconds, and workspace bytes while it ran."""

    def __init__(self, run: Run, view: Work, microseconds: float, hidden: int, images: int) -> None:
        self.run = run
        self.view = view
        self.microseconds = microseconds
        self.hidden = hidden
        self.images = images
        self.is_bound = False
        """Whether the time is only an upper bound, because the GPU may have waited for the host."""


def runs() -> list[Run]:
    found = []
    for file in FILES:
        for row in read_lines(MEASURED / f"{file}.jsonl.gz"):
            if "median" not in row:
                continue
            try:
                found.append(Run(file, row, scene_of(row["job"])))
            except BadInput as error:
                print("skipped:", error.sentence)
    return found


def row_runs() -> list[Run]:
    found = []
    for file in ROW_FILES:
        for row in read_rows(MEASURED / f"{file}.csv"):
            job = as_job(row)
            found.append(Run(file, {"job": job, "median": float(row["step_seconds_median"])}, scene_of(job)))
    return found


def host_runs() -> list[Run]:
    """Steps that wait for the host, with their times on an undisturbed host."""
    return [
        Run(HOST_FILE, {"job": row["job"], "median": undisturbed_seconds(row)}, scene_of(row["job"]))
        for row in read_lines(MEASURED / f"{HOST_FILE}.jsonl.gz")
    ]


QUICK_STEPS_MIN = {"infer": 5, "train": 10}
SHARE_QUICK, SHARE_ANY = 0.2, 0.07
PROBE_QUICK = 125
PROBE_POWER = 0.75
"""Exponent of the probe's time in the time of a step without gradients, for hosts that were never undisturbed."""


def undisturbed_seconds(row: dict[str, Any]) -> float:
    """Seconds per step. Training uses two threads and the probe measures one, so only its fastest steps count."""
    microseconds, probes = (np.array(each) for each in zip(*row["steps"], strict=True))
    quick, task = microseconds[probes <= UNDISTURBED_MICROSECONDS], row["job"]["task"]
    enough = len(quick) >= QUICK_STEPS_MIN[task]
    if task == "train":
        return 1e-6 * float(
            np.quantile(quick, SHARE_QUICK) if enough else np.quantile(microseconds, SHARE_ANY)
        )
    if enough:
        return 1e-6 * float(np.median(quick))
    best = probes <= np.quantile(probes, SHARE_QUICK)
    slower = float(np.median(probes[best])) / PROBE_QUICK
    return float(1e-6 * np.median(microseconds[best]) / slower**PROBE_POWER)


def scene_of(job: dict[str, Any]) -> Scene:
    workload = workload_of(job)
    trace = trace_for(workload)
    return Scene(trace, symbols_for(workload, trace), {})


def operations(run: Run) -> Iterator[Timed]:
    for name, given, made, count, total, best, peak, kept in run.operations:
        if name.startswith(SKIPPED):
            continue
        name = name if name.startswith(("sum.", "mul.", "div.", "add.")) else name.split(".")[0]
        inputs, outputs = tensors(given), tensors(made)
        if not (inputs or outputs):
            continue
        if name.startswith("_foreach"):
            outputs = []
        if name.endswith("batch_norm") and " False " in given:
            outputs = [outputs[0], ("f", [0], True)]  # inference keeps nothing of the batch
        view = work(name, inputs, outputs, attributes(name, given))
        if view.family == "matmul" and max(view.dims[:3]) <= TINY:
            continue  # belongs to Adafactor: see `fit_matrix`
        microseconds = best if run.file in LATE else min(total / count, 1.1 * best)
        timed = Timed(run, view, microseconds, peak - max(kept, 0), _images(name, inputs, outputs))
        steady = run.file != "fit_more" and total / count <= STEADY.get(min(count, 3), 0.0) * best
        timed.is_bound = run.file in LATE and not steady and best < LONG_MICROSECONDS
        yield timed


def _images(name: str, inputs: list[Shaped], outputs: list[Shaped]) -> int:
    """Bytes of a convolution's images plus twice its weight. Its workspace is a share of this."""
    if not name.startswith("convolution"):
        return 0
    sizes = [int(np.prod(shape)) * DTYPE_BYTES[dtype] for dtype, shape, _ in inputs]
    if name.endswith("backward"):
        return sizes[0] + sizes[1] + 2 * sizes[2]
    dtype, shape, _ = outputs[0]
    return sizes[0] + int(np.prod(shape)) * DTYPE_BYTES[dtype] + 2 * sizes[1]


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
    words = text.split(" ")
    if "attention" in name:
        given = [word for word in words if "[" not in word and "=" not in word]
        return [1] if given[-1] == "True" and given[-2] != "None" else []
    if name.startswith("_cudnn_rnn"):
        return _recurrent(words)
    if not name.startswith("convolution"):
        return []
    at = 4 if name == "convolution_backward" else 3
    first = [int(words[at + i].strip("()").split(",")[0]) for i in range(3)]
    groups = int(words[at + 5])
    mask = (
        [int(w == "True") for w in words[at + 6].strip("()").split(",")]
        if name == "convolution_backward"
        else []
    )
    return [*first, int(words[at + 3] == "True"), groups, *mask]


def _recurrent(words: list[str]) -> list[int]:
    """Mode, hidden size, layers, directions and times, as `workload/tracing/recurrent.py` records them."""
    at = 6 if len(words) == FORWARD_WORDS else 10
    mode, hidden, _, layers, batch_first = words[at : at + 5]
    shape = tensors(words[0])[0][1]
    times = shape[1 if batch_first == "True" else 0]
    return [int(mode), int(hidden), int(layers), 1 + (words[at + 7] == "True"), times]


FORWARD_WORDS = 16
