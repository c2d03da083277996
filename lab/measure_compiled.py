"""Measures steps of models under `torch.compile`: `python -m lab.measure_compiled JOBS OUT --seconds N`.

Compiling takes up to a minute for a model, and the timed steps take less than a second. So several processes build,
compile and warm up at once, then all but one sleep, and one after the other measures as `lab/measure.py` does. They
are forked before CUDA is initialised. With `"events": 1`, a job also records the sizes that were allocated in a step.
Needs a C compiler beside what that needs.
"""

import argparse
import importlib
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOM_GIB = 118.0
"""What the processes of one group may use together, by the `gib` of each job."""
READY_SECONDS_MAX = 150.0
TIMED_SECONDS_MAX = 25.0
WARM_SECONDS = 0.3
FORK = multiprocessing.get_context("fork")
Measure = Callable[[dict[str, Any], Path], dict[str, Any]]


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
    import torchvision  # noqa: F401  # before the forks, so that no child pays for it
    import transformers  # noqa: F401

    measure = importlib.import_module(options.worker).measure
    for group in _groups(jobs, options.at_once):
        left = end - time.monotonic()
        if left < 20:
            print("Out of time before", [each["model"] for each in group], flush=True)
            break
        _run(group, options.out, measure, left)


def _groups(jobs: list[dict[str, Any]], at_once: int) -> list[list[dict[str, Any]]]:
    """Each job in the first group with room for it."""
    groups: list[list[dict[str, Any]]] = []
    for job in jobs:
        for group in groups:
            if len(group) < at_once and sum(each["gib"] for each in group) + job["gib"] <= ROOM_GIB:
                group.append(job)
                break
        else:
            groups.append([job])
    return groups


def _run(group: list[dict[str, Any]], out: Path, measure: Measure, seconds: float) -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for number, job in enumerate(group):
            gate = Path(folder, str(number))
            process = FORK.Process(target=_run_one, args=(measure, job, out, gate))
            process.start()
            runs.append((job, gate, process))
        end = min(started + READY_SECONDS_MAX, started + seconds)
        waiting = list(runs)
        while waiting and time.monotonic() < end:
            waiting = [each for each in waiting if each[2].is_alive() and not each[1].exists()]
            time.sleep(0.1)
        for job, _, process in waiting:
            print("FAILED: not ready in time", job["model"], flush=True)
            process.kill()
        print(f"group of {len(group)} ready after {time.monotonic() - started:.0f} s", flush=True)
        for job, gate, process in runs:
            gate.with_suffix(".go").touch()
            process.join(max(0.0, min(TIMED_SECONDS_MAX, started + seconds - time.monotonic())))
            if process.is_alive():
                print("FAILED: not done in time", job["model"], flush=True)
                process.kill()
                process.join()


def wait_for_turn(gate: Path) -> None:
    gate.touch()
    while not gate.with_suffix(".go").exists():
        time.sleep(0.05)


def _run_one(measure: Measure, job: dict[str, Any], out: Path, gate: Path) -> None:
    from lab.rows import append_line

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
    main()
