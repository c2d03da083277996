"""Measures what `cudnn.benchmark` needs and gains: `python -m lab.measure_trials SEED OUT SECONDS`.

Draws convolutions by a seed. Each line of OUT has one with a precision, and for its forward pass, the gradient of its
images and the gradient of its weight: the bytes that the trials allocate at their peak beyond the result, then bytes
and microseconds of the chosen algorithm. PyTorch keeps the first algorithm for a shape, so none runs without
`cudnn.benchmark`. Needs only PyTorch.
"""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch

from lab.measure import AHEAD_CYCLES
from lab.rows import append_line

DTYPES: Final = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
NUMBERS_MAX: Final = 1 << 27
FLOPS_MAX: Final = 4e11
SIDES: Final = {1: (64, 8192), 2: (7, 512), 3: (8, 128)}
TIMED: Final = 4


def drawn(chance: random.Random) -> dict[str, Any]:
    """A convolution of moderate size, in the ways in which networks use them."""
    while True:
        dims = chance.choice((2, 2, 2, 2, 2, 2, 1, 3))
        low, high = SIDES[dims]
        side = round(low * (high / low) ** chance.random())
        if dims == 2 and chance.random() < 0.7:
            side = chance.choice((7, 14, 16, 28, 32, 56, 64, 112, 128, 224, 256))
        kernel = chance.choice((1, 3, 3, 3, 3, 4, 5, 7))
        stride = chance.choice((1, 1, 1, 2)) if kernel != 4 else 2
        kind = chance.choice(("plain",) * 7 + ("depthwise", "grouped", "transposed"))
        channels, out = (16 * round(2 ** chance.uniform(0, 6)) for _ in range(2))
        if chance.random() < 0.12:
            channels = 3
        groups = {"depthwise": channels, "grouped": 16}.get(kind, 1)
        if kind in ("depthwise", "grouped"):
            out = channels
        batch = round(2 ** chance.uniform(1, 7))
        ends = side * stride if kind == "transposed" else side // stride
        numbers = batch * max(channels * side**dims, out * ends**dims)
        flops = 2 * batch * out * channels // groups * kernel**dims * min(side, ends) ** dims
        if numbers <= NUMBERS_MAX and flops <= FLOPS_MAX and channels % groups == 0:
            return {
                "dims": dims, "side": side, "kernel": kernel, "stride": stride, "kind": kind, "groups": groups,
                "channels": channels, "out": out, "batch": batch,
                "precision": chance.choice(("fp32", "fp32", "bf16", "fp16")),
                "last": int(dims == 2 and chance.random() < 0.2),
            }  # fmt: skip


def passes(job: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    dims, dtype = job["dims"], DTYPES[job["precision"]]
    is_back = job["kind"] == "transposed"
    x = torch.randn(job["batch"], job["channels"], *[job["side"]] * dims, dtype=dtype)
    ends = (job["channels"], job["out"]) if is_back else (job["out"], job["channels"] // job["groups"])
    weight = torch.randn(*ends, *[job["kernel"]] * dims, dtype=dtype)
    if job["last"]:
        x, weight = (each.to(memory_format=torch.channels_last) for each in (x, weight))
    padding = job["kernel"] // 2 if job["kernel"] % 2 else (job["kernel"] - job["stride"]) // 2
    words = ([job["stride"]] * dims, [padding] * dims, [1] * dims, is_back, [0] * dims, job["groups"])
    act, back = torch.ops.aten.convolution, torch.ops.aten.convolution_backward
    made = shape_of(x, weight, words)
    grad = torch.randn(made, dtype=dtype)
    if job["last"]:
        grad = grad.to(memory_format=torch.channels_last)
    return {
        "forward": lambda: act(x, weight, None, *words),
        "images": lambda: back(grad, x, weight, None, *words, [True, False, False]),
        "weight": lambda: back(grad, x, weight, None, *words, [False, True, False]),
    }


def shape_of(x: Any, weight: Any, words: Any) -> list[int]:
    """Of the result, without running the convolution."""
    with torch.device("meta"):
        return list(torch.ops.aten.convolution(x.to("meta"), weight.to("meta"), None, *words).shape)


def peak(call: Callable[[], Any]) -> int:
    """Bytes at the peak beyond what is left at the end."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    made = call()
    found = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
    del made
    return found


def microseconds(call: Callable[[], Any]) -> float:
    best = 1e9
    for _ in range(TIMED):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        torch.cuda._sleep(AHEAD_CYCLES)
        marks[0].record()
        made = call()
        marks[1].record()
        torch.cuda.synchronize()
        del made
        best = min(best, 1e3 * marks[0].elapsed_time(marks[1]))
    return round(best, 2)


def measured(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"job": job}
    for name, call in passes(job).items():
        found[name] = [peak(call), peak(call), microseconds(call)]
    return found


def main() -> None:
    chance, out = random.Random(int(sys.argv[1])), Path(sys.argv[2])
    end = time.monotonic() + float(sys.argv[3])
    torch.set_default_device("cuda")
    torch.backends.cudnn.benchmark = True
    while time.monotonic() < end:
        job = drawn(chance)
        try:
            append_line(out, measured(job))
        except Exception as error:
            print("FAILED", job, str(error)[:150], flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
