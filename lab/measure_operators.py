"""Measures single operators on the GPU at hand, in the way of the public latencies that `lab/reach.py` reads.

`python -m lab.measure_operators SHAPES OUT`: a JSON object of shapes per operator in, JSON lines out. Plain
fp32, forward, TF32 off, cudnn.benchmark on, CUDA events around each call, the mean of the 5 fastest of 25.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

CALLS, FASTEST = 25, 5
SECONDS_MAX = 150.0


def call_of(name: str, shape: dict[str, int]) -> Callable[[], Any]:
    def n(*keys: str) -> list[int]:
        return [shape[key] for key in keys]

    if name == "linear":
        x, net = torch.randn(*n("rows", "in_features")), torch.nn.Linear(*n("in_features", "out_features"))
        return lambda: net(x)
    if name == "bmm":
        a, b = torch.randn(*n("batch", "m", "k")), torch.randn(*n("batch", "k", "n"))
        return lambda: torch.bmm(a, b)
    if name == "conv":
        wide, out, kernel, stride, pad = n("in_channels", "out_channels", "kernel_size", "stride", "padding")
        conv = torch.nn.Conv2d(wide, out, kernel, stride, pad, bias=False)
        image = torch.zeros(*n("batch", "in_channels", "input_size", "input_size"))
        return lambda: conv(image)
    zeros = torch.zeros(*n("rows", "cols"))
    if name == "add":
        other = torch.zeros_like(zeros)
        return lambda: zeros + other
    if name == "ln":
        norm = torch.nn.LayerNorm(shape["cols"])
        return lambda: norm(zeros)
    plain: dict[str, Callable[[Any], Any]] = {"relu": functional.relu, "gelu": functional.gelu}
    return lambda: plain[name](zeros) if name in plain else functional.softmax(zeros, -1)


def milliseconds(call: Callable[[], Any]) -> float:
    for _ in range(3):
        call()
    times = []
    for _ in range(CALLS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return float(sum(sorted(times)[:FASTEST]) / FASTEST)


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    wanted = json.loads(Path(sys.argv[1]).read_text())
    queue = [(name, shape) for name, shapes in wanted.items() for shape in shapes]
    # Operators take turns, so that whatever the time allows is spread over all of them.
    queue.sort(key=lambda each: wanted[each[0]].index(each[1]) / len(wanted[each[0]]))
    began = time.perf_counter()
    with Path(sys.argv[2]).open("w") as lines, torch.device("cuda"), torch.no_grad():
        for name, shape in queue:
            if time.perf_counter() - began > SECONDS_MAX:
                break
            row = {"op": name, **shape, "latency_ms": round(milliseconds(call_of(name, shape)), 6)}
            lines.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
