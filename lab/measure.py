"""Measures steps on this machine's GPU: `python -m lab.measure JOBS OUT` writes JSON lines as in measured/README.md.

If OUT ends in `.csv` it writes a table (`lab/rows.py`). Needs only PyTorch with CUDA, torchvision and transformers.
Each job runs in its own process, forked before CUDA is initialised. Peaks are never reset, so they cover building the
model and all steps. A job that fails or hangs loses only its own row, and each row is on disk before the next job
starts. With `--together N`, N jobs share a process, which saves starting CUDA. Their rows have no peaks, and a job that
hangs also loses the later jobs of its process.
"""

import argparse
import gc
import json
import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lab.probe import probe
from lab.rows import append_line, append_row

WARM, TIMED = 3, 10
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
AMP = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}
AHEAD_CYCLES = 1_000_000
"""The GPU idles this long (half a millisecond) before each recorded operation, so that the host has time to queue it.
With a fifth of that, as in `fit_drawn`, the GPU waited for the host in many convolutions."""
LETTERS = {
    torch.float32: "f", torch.bfloat16: "b", torch.float16: "h", torch.float64: "d", torch.int64: "l",
    torch.int32: "i",
}  # fmt: skip
TORCHVISION = {
    "inception_v3": {"aux_logits": False, "init_weights": False},
    "googlenet": {"aux_logits": False, "init_weights": False},
}
PIXELS = {"inception_v3": 299, "efficientnet_b4": 380}
PROCESS_SECONDS_MAX = 60
COMPILE_SECONDS_MAX = 240
SAMPLES_MAX = 4
"""How often to time a distinct operation. The layers of a model repeat it, and each time takes AHEAD_CYCLES."""
PEAKS = ("live", "reserved", "device")


def build(job: dict[str, Any]) -> tuple[Any, Callable[[], Any]]:
    from lab import language, others

    variant = SimpleNamespace(task=job["task"], precision=job["precision"])
    if job["model"] in others.MODELS:
        make, _, _ = others.MODELS[job["model"]]
        net, forward, _ = make(variant, {"batch": job["batch"]})
        return net, forward
    if job["model"] in language.MODELS:
        return _language(language.MODELS[job["model"]], job)
    return _vision(job)


def _vision(job: dict[str, Any]) -> tuple[Any, Callable[[], Any]]:
    import torchvision

    name, half = job["model"], HALF.get(job["precision"], torch.float32)
    side = job["px"] or PIXELS.get(name, 224)
    words = {"image_size": side} if name.startswith("vit_") else TORCHVISION.get(name, {})
    net = torchvision.models.get_model(name, weights=None, **words).to(half)
    x, y = torch.randn(job["batch"], 3, side, side, dtype=half), torch.randint(0, 1000, (job["batch"],))
    if job["task"] == "infer":
        return net, lambda: net(x)
    return net, lambda: torch.nn.CrossEntropyLoss()(net(x), y)


def _language(make: Any, job: dict[str, Any]) -> tuple[Any, Callable[[], Any]]:
    torch.set_default_dtype(HALF.get(job["precision"], torch.float32))
    net = make()
    torch.set_default_dtype(torch.float32)
    ids = torch.randint(0, 20000, (job["batch"], job["seq"]))
    net.config.use_cache = False
    if job["lora"]:
        from lab.lora import add_lora

        add_lora(net, job["lora"])
        for each in net.parameters():
            if each.requires_grad:
                torch.nn.init.normal_(each, std=0.02)
    if job["ckpt"]:
        net.gradient_checkpointing_enable()
        if job["lora"]:
            net.enable_input_require_grads()
    if job["task"] == "infer":
        second = {"decoder_input_ids": ids} if net.config.is_encoder_decoder else {}
        return net, lambda: net(input_ids=ids, **second)
    return net, lambda: net(input_ids=ids, labels=ids).loss


def optimizer(name: str, parameters: list[Any]) -> Any:
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "adafactor": torch.optim.Adafactor}
    return kinds[name](parameters, lr=1e-6)


def measure(job: dict[str, Any]) -> dict[str, Any]:
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = job["precision"] == "tf32"
    torch.backends.cudnn.allow_tf32 = not job.get("plain")
    torch.backends.cudnn.benchmark = bool(job.get("benchmark"))
    with torch.device("cuda"):
        net, forward = build(job)
    if job.get("compile"):
        net.compile()
    step = make_step(net, forward, job)
    seconds, probes = [], []
    with drawing(job):
        for _ in range(WARM + TIMED):
            probes.append(probe())
            torch.cuda.synchronize()
            start = time.perf_counter()
            step()
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
    free, total = torch.cuda.mem_get_info()
    found: dict[str, Any] = {
        "job": job,
        "live": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "device": total - free,
        "median": statistics.median(seconds[WARM:]),
        "min": min(seconds[WARM:]),
        "probe": statistics.median(probes[WARM:]),
        "parameters": sum(p.numel() for p in net.parameters()),
        "trainable": sum(p.numel() for p in net.parameters() if p.requires_grad),
    }
    if job["record"]:
        with drawing(job), Operations() as operations:
            step()
        found["ops"] = operations.rows()
    return found


def drawing(job: dict[str, Any]) -> AbstractContextManager[Any]:
    """Generators draw noise on the model's device in every step. Do not use this for other steps: it intercepts every
    Python call and adds one or two microseconds to each, and 26 to each parameter that Adam updates."""
    from lab import others

    return torch.device("cuda") if job["model"] in others.MODELS else nullcontext()


def make_step(net: Any, forward: Callable[[], Any], job: dict[str, Any]) -> Callable[[], Any]:
    autocast = torch.autocast(
        "cuda", dtype=AMP.get(job["precision"], torch.bfloat16), enabled=job["precision"] in AMP
    )
    if job["task"] == "infer":
        net.eval()

        def look() -> None:
            with torch.no_grad(), autocast:
                forward()

        return look
    net.train()
    trained = optimizer(job["optimizer"], [p for p in net.parameters() if p.requires_grad])

    def train() -> None:
        trained.zero_grad(set_to_none=True)
        with autocast:
            loss = forward()
        loss.backward()
        trained.step()

    return train


class Operations(TorchDispatchMode):  # type: ignore[misc]  # PyTorch is untyped here
    """Every distinct operation of a step: how often it was timed, how long, how much memory."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[tuple[str, str, str], list[tuple[Any, Any, int, int]]] = {}
        self.seen: Counter[tuple[Any, str]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.is_view or func.namespace == "profiler":
            return func(*args, **kwargs)
        given = " ".join(
            [*(_text(a) for a in args), *(f"{k}={_text(v)}" for k, v in kwargs.items() if v is not None)]
        )
        self.seen[func, given] += 1
        if self.seen[func, given] > SAMPLES_MAX:
            return func(*args, **kwargs)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda._sleep(AHEAD_CYCLES)
        start.record()
        out = func(*args, **kwargs)
        end.record()
        name = func.overloadpacket.__name__
        if func._overloadname != "default":
            name += "." + func._overloadname
        made = " ".join(_text(each) for each in (out if isinstance(out, tuple | list) else (out,)))
        made = " ".join(word for word in made.split(" ") if "[" in word)
        spent = (torch.cuda.max_memory_allocated() - before, torch.cuda.memory_allocated() - before)
        self.found.setdefault((name, given, made), []).append((start, end, *spent))
        return out

    def rows(self) -> list[list[Any]]:
        torch.cuda.synchronize()
        made = []
        for (name, given, out), runs in self.found.items():
            times = [1e3 * start.elapsed_time(end) for start, end, _, _ in runs]
            peak, kept = max(r[2] for r in runs), max(r[3] for r in runs)
            made.append([name, given, out, len(runs), round(sum(times), 2), round(min(times), 2), peak, kept])
        return made


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        layout = "" if value.is_contiguous() else "T"
        if value.dim() == 4 and not value.is_contiguous():
            layout = "C" if value.is_contiguous(memory_format=torch.channels_last) else "T"
        return f"{LETTERS.get(value.dtype, '?')}{layout}[{','.join(map(str, value.shape))}]"
    if isinstance(value, list | tuple) and value and isinstance(value[0], torch.Tensor):
        kind = LETTERS.get(value[0].dtype, "?")
        return f"{kind}*{len(value)}:{sum(each.numel() for each in value)}"
    if isinstance(value, list | tuple) and any(isinstance(each, torch.Tensor) for each in value):
        return "(" + ",".join(map(_text, value)) + ")"
    if isinstance(value, list | tuple):
        return "(" + ",".join(map(str, value)) + ")"
    return "x" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--rounds",
        type=int,
        default=1,
        help="measure each job in this many processes; go through the whole list each time",
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="start no job after this many seconds"
    )
    parser.add_argument(
        "--together", type=int, default=1, help="run this many jobs in one process, without peaks"
    )
    options = parser.parse_args()
    if options.together > 1 and options.out.suffix == ".csv":
        parser.error("a table needs peaks: use --together 1, or an OUT that ends in .jsonl")
    end = time.monotonic() + options.seconds
    jobs = [json.loads(line) for line in options.jobs.read_text().splitlines()] * options.rounds
    import torchvision  # noqa: F401  # before the fork, so that no child pays for it
    import transformers  # noqa: F401

    for done in range(0, len(jobs), options.together):
        if time.monotonic() >= end:
            print(f"Out of time after {done} of {len(jobs)} jobs", flush=True)
            return
        child = os.fork()
        if not child:
            _measure_into(jobs[done : done + options.together], options.out)
            os._exit(0)
        _wait_for(child, jobs[done])


def _wait_for(child: int, job: dict[str, Any]) -> None:
    limit = COMPILE_SECONDS_MAX if job.get("compile") else PROCESS_SECONDS_MAX
    end = time.monotonic() + limit
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() >= end:
            print("FAILED: not done", limit, "s after", job, flush=True)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return
        time.sleep(0.02)


def _measure_into(jobs: Sequence[dict[str, Any]], out: Path) -> None:
    for job, found in each_of(jobs, measure):
        if out.suffix == ".csv":
            append_row(out, found, gpu=_gpu(), torch=str(torch.__version__))
        else:
            kept = found.items() if len(jobs) == 1 else ((k, v) for k, v in found.items() if k not in PEAKS)
            append_line(out, dict(kept))
        print(job["model"], job["precision"], job["optimizer"], f"{1e3 * found['median']:.2f} ms", flush=True)


def each_of(
    jobs: Iterable[dict[str, Any]], act: Callable[[dict[str, Any]], dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The jobs of one process with their results. A job that fails must not affect the others."""
    for job in jobs:
        try:
            found = act(job)
        except Exception as error:
            print(job, "FAILED", type(error).__name__, str(error)[:300], flush=True)
            continue
        finally:
            torch.set_default_dtype(torch.float32)
            gc.collect()
            torch.cuda.empty_cache()
        yield job, found


def _gpu() -> str:
    return str(torch.cuda.get_device_name()).removeprefix("NVIDIA ")


if __name__ == "__main__":
    main()
