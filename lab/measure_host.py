"""Measures what a host takes to issue steps: `python -m lab.measure_host JOBS OUT`, on a GPU.

Jobs as `lab/ways.py` writes them, so small that the GPU waits; those of one model share a process. A probe runs
between any two steps: a step was undisturbed where the probes around it were quick. Needs PyTorch with CUDA,
torchvision and transformers, and nothing else.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from lab.measure import build, drawing, each_of, make_step
from lab.probe import UNDISTURBED_MICROSECONDS, probe
from lab.rows import append_line

WARM = 4
QUICK_WANTED = 25
SECONDS = 0.5
SECONDS_MAX = 2.0
"""For a host that is disturbed so often that fewer steps than wanted are left."""


def timed(step: Callable[[], Any]) -> list[tuple[float, float]]:
    """Microseconds of each step, and of the slower of the probes around it."""
    for _ in range(WARM):
        step()
    found: list[tuple[float, float]] = []
    begin, before = time.perf_counter(), probe()
    while True:
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        seconds, after = time.perf_counter() - start, probe()
        found.append((round(1e6 * seconds, 1), round(max(before, after), 1)))
        before, spent = after, time.perf_counter() - begin
        if spent > SECONDS_MAX or (spent > SECONDS and len(undisturbed(found)) >= QUICK_WANTED):
            return found


def undisturbed(found: list[tuple[float, float]]) -> list[float]:
    return [microseconds for microseconds, each in found if each <= UNDISTURBED_MICROSECONDS]


def calls(act: Callable[[], Any]) -> tuple[int, int]:
    """How many functions of Python, and of C, the thread calls on its way."""
    counts = {"call": 0, "c_call": 0}

    def see(frame: Any, event: str, argument: Any) -> None:
        if event in counts:
            counts[event] += 1

    sys.setprofile(see)
    try:
        act()
    finally:
        sys.setprofile(None)
    return counts["call"], counts["c_call"]


def measure_host(job: dict[str, Any]) -> dict[str, Any]:
    torch.manual_seed(0)
    with torch.device("cuda"):
        net, forward = build(job)
    step = make_step(net, forward, job)
    with drawing(job):
        found = timed(step)
        return {"job": job, "steps": found, "forward_calls": calls(forward), "step_calls": calls(step)}


def _measure_model(jobs: list[dict[str, Any]], out: Path) -> None:
    for job, row in each_of(jobs, measure_host):
        append_line(out, row)
        ways = [job[each] for each in ("model", "task", "precision", "optimizer", "ckpt", "lora")]
        print(*ways, f"{len(undisturbed(row['steps']))} of {len(row['steps'])} steps undisturbed", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    jobs = [json.loads(line) for line in options.jobs.read_text().splitlines()]
    import torchvision  # noqa: F401  # before the fork, so that no child pays for it
    import transformers  # noqa: F401

    for _, model in groupby(jobs, key=lambda job: job["model"]):
        if not (child := os.fork()):
            _measure_model(list(model), options.out)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
