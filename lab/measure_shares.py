"""Measures steps on a part of the GPU at hand: `python -m lab.measure_shares JOBS OUT --per-cent 13,20,46,100`.

MPS gives a process a share of the SMs; it needs no change to the card's clocks, power limit, compute mode or layout.
With `--copies N` so many processes run the same steps at the same time, each with its share of the SMs: they also share
the bandwidth, as busy slices of one card do. Needs PyTorch with CUDA, torchvision and transformers, and an MPS daemon
(`nvidia-cuda-mps-control -d`). One JSON object per line, as in measured/README.md, with `sms` and `copies`.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time
from pathlib import Path
from typing import Any

SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
WARM, SECONDS, STEPS_MIN = 3, 1.5, 6
WAIT_SECONDS_MAX = 90


def measure_alone(jobs: list[dict[str, Any]], out: Path, end: float) -> None:
    import torch

    from lab.measure import PEAKS, each_of, measure
    from lab.rows import append_line

    sms = torch.cuda.get_device_properties(0).multi_processor_count
    left = (job for job in jobs if time.monotonic() < end)
    for job, found in each_of(left, measure):
        append_line(out, {"sms": sms, "copies": 1, **{k: v for k, v in found.items() if k not in PEAKS}})
        print(sms, job["model"], job["precision"], f"{1e3 * found['min']:.2f} ms", flush=True)


def measure_together(rank: int, jobs: list[dict[str, Any]], out: Path, barrier: Any) -> None:
    """Every copy runs steps for the same span of time; each writes its own line."""
    import torch

    from lab.measure import build, drawing, each_of, make_step
    from lab.rows import append_line

    def measure(job: dict[str, Any]) -> dict[str, Any]:
        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = job["precision"] == "tf32"
        with torch.device("cuda"):
            net, forward = build(job)
        step = make_step(net, forward, job)
        spent: list[float] = []
        with drawing(job):
            for _ in range(WARM):
                step()
            torch.cuda.synchronize()
            barrier.wait(WAIT_SECONDS_MAX)
            begin = time.perf_counter()
            while time.perf_counter() - begin < SECONDS or len(spent) < STEPS_MIN:
                start = time.perf_counter()
                step()
                torch.cuda.synchronize()
                spent.append(time.perf_counter() - start)
            barrier.wait(WAIT_SECONDS_MAX)
        return {"job": job, "median": statistics.median(spent), "min": min(spent)}

    sms = torch.cuda.get_device_properties(0).multi_processor_count
    for job, found in each_of(jobs, measure):
        append_line(out, {"sms": sms, "copies": barrier.parties, "rank": rank, **found})
        print(
            sms,
            barrier.parties,
            job["model"],
            job["precision"],
            f"{1e3 * found['median']:.2f} ms",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--per-cent", required=True, help="shares of the SMs, separated by commas")
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing after so long")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    jobs = [json.loads(line) for line in options.jobs.read_text().splitlines() if line]
    start = multiprocessing.get_context("spawn")
    for share in options.per_cent.split(","):
        os.environ[SHARE] = share
        if time.monotonic() >= end:
            print(f"Out of time before {share} %", flush=True)
            return
        if options.copies == 1:
            made = [start.Process(target=measure_alone, args=(jobs, options.out, end))]
        else:
            barrier = start.Barrier(options.copies)
            made = [
                start.Process(target=measure_together, args=(rank, jobs, options.out, barrier))
                for rank in range(options.copies)
            ]
        for each in made:
            each.start()
        for each in made:
            each.join()


if __name__ == "__main__":
    main()
