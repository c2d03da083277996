"""Measures steps of models under `torch.compile`: `python -m lab.measure_compiled JOBS OUT --seconds N`.

Compiling takes up to a minute for a model, and the timed steps take less than a second. So several processes build,
compile and warm up at once, then all but one sleep, and one after the other measures as `lab/measure.py` does. With
`"events": 1`, a job also records the sizes that were allocated in a step. Needs a C compiler beside what that needs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOM_GIB = 110.0
"""What the processes of one group may use together, by the `gib` of each job."""
READY_SECONDS_MAX = 150.0
TIMED_SECONDS_MAX = 25.0
WARM_SECONDS = 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end all after this")
    parser.add_argument("--worker", default="lab.measure_compiled", help="the module that runs one job")
    parser.add_argument("--at-once", type=int, default=16, help="how many jobs prepare at the same time")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    jobs = [json.loads(line) for line in options.jobs.read_text().splitlines()]
    for group in _groups(jobs, options.at_once):
        left = end - time.monotonic()
        if left < 20:
            print("Out of time before", [each["model"] for each in group], flush=True)
            break
        _run(group, options.out, options.worker, left)


def _groups(jobs: list[dict[str, Any]], at_once: int) -> Iterator[list[dict[str, Any]]]:
    """In the order of the file, as many at once as fit."""
    group: list[dict[str, Any]] = []
    for job in jobs:
        if len(group) == at_once or sum(each["gib"] for each in group) + job["gib"] > ROOM_GIB:
            yield group
            group = []
        group.append(job)
    if group:
        yield group


def _run(group: list[dict[str, Any]], out: Path, worker: str, seconds: float) -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for number, job in enumerate(group):
            gate = Path(folder, str(number))
            command = [sys.executable, "-m", worker, "--one", json.dumps(job), str(out), str(gate)]
            runs.append((job, gate, subprocess.Popen(command, env={**os.environ, **job.get("env", {})})))
        end = min(started + READY_SECONDS_MAX, started + seconds)
        waiting = list(runs)
        while waiting and time.monotonic() < end:
            waiting = [each for each in waiting if each[2].poll() is None and not each[1].exists()]
            time.sleep(0.1)
        for job, _, process in waiting:
            print("FAILED: not ready in time", job["model"], flush=True)
            process.kill()
        print(f"group of {len(group)} ready after {time.monotonic() - started:.0f} s", flush=True)
        for job, gate, process in runs:
            if process.poll() is None:
                gate.with_suffix(".go").touch()
                try:
                    left = started + seconds - time.monotonic()
                    process.wait(max(0.0, min(TIMED_SECONDS_MAX, left)))
                except subprocess.TimeoutExpired:
                    print("FAILED: not done in time", job["model"], flush=True)
                    process.kill()
                    process.wait()


def wait_for_turn(gate: Path) -> None:
    gate.touch()
    while not gate.with_suffix(".go").exists():
        time.sleep(0.05)


def run_one(measure: Callable[[dict[str, Any], Path], dict[str, Any]]) -> None:
    """In a worker: `--one JOB OUT GATE`."""
    from lab.rows import append_line

    job, out, gate = json.loads(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
    try:
        found = measure(job, gate)
    except Exception as error:
        print(job, "FAILED", type(error).__name__, str(error)[:300], flush=True)
        return
    append_line(out, found)
    print(job["model"], job.get("precision", ""), f"{1e3 * found['median']:.2f} ms", flush=True)


def timed(step: Callable[[], Any], gate: Path) -> dict[str, Any]:
    """Warm up, wait for the others, then time ten steps."""
    import torch

    from lab.measure import TIMED, WARM
    from lab.probe import probe

    for _ in range(WARM):
        step()
    torch.cuda.synchronize()
    wait_for_turn(gate)
    end = time.monotonic() + WARM_SECONDS
    seconds: list[float] = []
    probes: list[float] = []
    while len(seconds) < TIMED:
        probes.append(probe())
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        if time.monotonic() > end:
            seconds.append(time.perf_counter() - start)
    free, total = torch.cuda.mem_get_info()
    return {
        "live": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "device": total - free,
        "median": statistics.median(seconds),
        "min": min(seconds),
        "probe": statistics.median(probes[-TIMED:]),
    }


def allocations(step: Callable[[], Any]) -> list[int]:
    """The sizes that one step allocates, in order; a negative number -n frees what was allocated n-th, and 0 frees
    what the step found allocated."""
    import torch

    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, context=None)
    step()
    torch.cuda.synchronize()
    return recorded_allocations()


def recorded_allocations() -> list[int]:
    import torch

    history = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    found: list[int] = []
    numbers: dict[int, int] = {}
    births = 0
    for each in history:
        if each["action"] == "alloc":
            births += 1
            numbers[each["addr"]] = births
            found.append(each["size"])
        elif each["action"] == "free_completed":
            found.append(-numbers.pop(each["addr"], 0))
    return found


def measure(job: dict[str, Any], gate: Path) -> dict[str, Any]:
    import torch

    from lab.measure import build, drawing, make_step

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = job["precision"] == "tf32"
    with torch.device("cuda"):
        net, forward = build(job)
    net.compile()
    step = make_step(net, forward, job)
    with drawing(job):
        found = timed(step, gate)
        if job.get("events"):
            found |= {"events": allocations(step), "kernels": kernels(step)}
    found["parameters"] = sum(p.numel() for p in net.parameters())
    found["trainable"] = sum(p.numel() for p in net.parameters() if p.requires_grad)
    return {"job": {**job, "compile": 1}, **found}


def kernels(step: Callable[[], Any]) -> list[list[Any]]:
    """Name, count and microseconds of the kernels of a step."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    return kernel_rows(profile)


def kernel_rows(profile: Any) -> list[list[Any]]:
    rows = [[each.key[:90], each.count, round(each.device_time_total, 1)] for each in profile.key_averages()]
    return sorted(rows, key=lambda row: -row[2])[:60]


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        run_one(measure)
    else:
        main()
