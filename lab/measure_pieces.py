"""Measures pieces that scripts of others use and the zoo does not: `python -m lab.measure_pieces OUT SECONDS`.

Recurrent layers as one kernel of cuDNN, operations with indices, sorting, optimizers on lists, convolutions in the
channels-last layout and in one or three dimensions. Each piece runs forward and backward; every operation is recorded
as in a step (`lab/measure.py`). The pieces take turns, so that a time limit affects all kinds equally.
"""

import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from lab.measure import Operations
from lab.rows import append_line

Piece = tuple[dict[str, Any], Callable[[], Any]]
HALF = torch.bfloat16


def _values(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.randn(*shape, device="cuda").to(dtype).requires_grad_()


def _indices(most: int, *shape: int) -> Any:
    return torch.randint(0, most, shape, device="cuda")


def recurrent(draw: random.Random) -> Iterator[Piece]:
    while True:
        kind = draw.choice(("LSTM", "LSTM", "GRU", "GRU", "RNN"))
        sizes = {
            "times": draw.choice((16, 32, 50, 70, 100, 200, 400, 600)),
            "batch": draw.choice((8, 16, 20, 32, 64, 128)),
            "inputs": draw.choice((64, 128, 256, 512, 1024)),
            "hidden": draw.choice((64, 128, 256, 400, 512, 650, 1024)),
            "layers": draw.choice((1, 1, 2, 3)),
            "directions": draw.choice((1, 2)),
            "half": draw.choice((0, 0, 1)),
            "dropout": draw.choice((0, 0, 1)),
            "train": draw.choice((1, 1, 1, 0)),
        }
        yield {"piece": kind, **sizes}, _recurrent(kind, **sizes)


def _recurrent(
    kind: str, times: int, batch: int, inputs: int, hidden: int, layers: int, directions: int, half: int,
    dropout: int, train: int,
) -> Callable[[], Any]:  # fmt: skip
    def run() -> None:
        dtype = HALF if half else torch.float32
        options = {"bidirectional": directions == 2, "dropout": 0.3 * dropout * (layers > 1)}
        net = getattr(torch.nn, kind)(inputs, hidden, layers, **options).to("cuda", dtype)
        x = _values(times, batch, inputs, dtype=dtype)
        if not train:
            with torch.no_grad():
                net(x)
            return
        out, _ = net(x)
        out.backward(torch.ones_like(out))

    return run


def indexed(draw: random.Random) -> Iterator[Piece]:
    for kind in itertools.cycle(INDEXED):
        rows, picks = (
            draw.choice((1_000, 10_000, 50_000, 200_000)),
            draw.choice((2_000, 20_000, 100_000, 400_000)),
        )
        width = draw.choice((1, 4, 16, 32, 64, 128, 256))
        half = draw.choice((0, 0, 1))
        sizes = {"rows": rows, "picks": picks, "width": width, "half": half}
        yield {"piece": kind, **sizes}, _indexed(kind, rows, picks, width, HALF if half else torch.float32)


def _indexed(kind: str, rows: int, picks: int, width: int, dtype: Any) -> Callable[[], Any]:
    def run() -> None:
        x, source = _values(rows, width, dtype=dtype), _values(picks, width, dtype=dtype)
        at = _indices(rows, picks)
        out = INDEXED[kind](x, source, at)
        if out is not None:
            out.backward(torch.ones_like(out))

    return run


def _wide(at: Any, like: Any) -> Any:
    return at[:, None].expand_as(like)


INDEXED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "index": lambda x, source, at: x[at],
    "index_select": lambda x, source, at: x.index_select(0, at),
    "gather": lambda x, source, at: x.gather(0, _wide(at, source)),
    "embedding": lambda x, source, at: functional.embedding(at, x),
    "index_add": lambda x, source, at: x.index_add(0, at, source),
    "scatter_add": lambda x, source, at: torch.zeros_like(x).scatter_add(0, _wide(at, source), source),
    "scatter_amax": lambda x, source, at: torch.zeros_like(x).scatter_reduce(
        0, _wide(at, source), source, "amax"
    ),
    "embedding_bag": lambda x, source, at: functional.embedding_bag(
        at.view(-1, 4), x.float(), mode="sum"
    ).float(),
    "sort": lambda x, source, at: source.detach().sort(0) and None,
    "cumsum": lambda x, source, at: source.cumsum(0),
    "cumprod": lambda x, source, at: source.cumprod(-1),
    "topk": lambda x, source, at: source.topk(min(5, source.shape[1]), -1)[0],
    "max": lambda x, source, at: source.max(-1)[0],
    "one_hot": lambda x, source, at: functional.one_hot(at % 100, 100) is None or None,
    "repeat": lambda x, source, at: source.repeat(2, 1),
    "stack": lambda x, source, at: torch.stack((source, source)),
    "pointwise": lambda x, source, at: functional.elu(functional.leaky_relu(source).sigmoid().exp()).clamp(0),
    "log": lambda x, source, at: (source.abs() + 1).log().sqrt().tanh().maximum(source),
}


def convolved(draw: random.Random) -> Iterator[Piece]:
    while True:
        kind = draw.choice(("last", "last", "last", "transposed", "one", "three", "instance", "group", "pad"))
        sizes = {
            "batch": draw.choice((2, 4, 8, 16, 32, 64)),
            "inputs": draw.choice((3, 16, 32, 64, 128, 256, 512)),
            "outputs": draw.choice((16, 32, 64, 128, 256, 512)),
            "side": draw.choice((8, 16, 28, 32, 56, 64, 112)),
            "window": draw.choice((1, 3, 3, 4, 5)),
            "stride": draw.choice((1, 1, 2)),
            "half": draw.choice((0, 0, 1)),
        }
        if sizes["batch"] * max(sizes["inputs"], sizes["outputs"]) * sizes["side"] ** 2 < 3e8:
            yield {"piece": f"conv_{kind}", **sizes}, _convolved(kind, **sizes)


def _convolved(
    kind: str, batch: int, inputs: int, outputs: int, side: int, window: int, stride: int, half: int
) -> Callable[[], Any]:
    def run() -> None:
        dtype, pad, nn = HALF if half else torch.float32, window // 2, torch.nn
        shape = {"one": (side * side,), "three": (max(8, side // 4),) * 3}.get(kind, (side, side))
        net: Any = {
            "transposed": lambda: nn.ConvTranspose2d(inputs, outputs, window, stride, pad),
            "one": lambda: nn.Conv1d(inputs, outputs, window, stride, pad),
            "three": lambda: nn.Conv3d(inputs, outputs, window, stride, pad),
            "instance": lambda: nn.InstanceNorm2d(inputs, affine=True),
            "group": lambda: nn.GroupNorm(min(inputs, 32) if inputs % 32 == 0 else 1, inputs),
            "pad": lambda: nn.ReflectionPad2d(pad or 1),
        }.get(kind, lambda: nn.Conv2d(inputs, outputs, window, stride, pad))()
        net = net.to("cuda", dtype)
        x = _values(batch, inputs, *shape, dtype=dtype).detach()
        if kind == "last":
            net, x = (
                net.to(memory_format=torch.channels_last),
                x.contiguous(memory_format=torch.channels_last),
            )
            net = torch.nn.Sequential(net, torch.nn.BatchNorm2d(outputs).to("cuda", dtype), torch.nn.ReLU())
        out = net(x.requires_grad_())
        out.backward(torch.ones_like(out))

    return run


def stepped(draw: random.Random) -> Iterator[Piece]:
    """Optimizers of lists of parameters, with the host's time for a step and a backward pass that does nothing."""
    kinds = ("Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "NAdam", "Adadelta", "fused", "single", "clip")
    for kind in itertools.cycle(kinds):
        count, size = draw.choice((10, 60, 200)), draw.choice((1_000, 100_000, 1_000_000))
        yield (
            {"piece": f"optimizer_{kind}", "count": count, "size": size, "host": 1},
            _stepped(kind, count, size),
        )


def _stepped(kind: str, count: int, size: int) -> Callable[[], Any]:
    parameters: list[Any] = []
    made: list[Any] = []

    def run() -> None:
        if not parameters:
            parameters.extend(_values(size) for _ in range(count))
            for each in parameters:
                each.grad = torch.ones_like(each)
            name = {"fused": "AdamW", "single": "AdamW", "clip": "SGD"}.get(kind, kind)
            words = {"fused": {"fused": True}, "single": {"foreach": False}}.get(kind, {})
            made.append(getattr(torch.optim, name)(parameters, lr=1e-4, **words))
        if kind == "clip":
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        else:
            made[0].step()

    return run


def _host_microseconds(run: Callable[[], Any]) -> float:
    """The host's time to issue, while the GPU is busy with something else."""
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        torch.cuda._sleep(40_000_000)
        start = time.perf_counter()
        run()
        times.append(1e6 * (time.perf_counter() - start))
    return round(min(times), 1)


def main() -> None:
    out, seconds = Path(sys.argv[1]), float(sys.argv[2])
    end = time.monotonic() + seconds
    draw = random.Random(16_116)
    kinds = [recurrent(draw), indexed(draw), convolved(draw), recurrent(draw), stepped(draw)]
    for kind in itertools.cycle(kinds):
        if time.monotonic() > end:
            return
        job, run = next(kind)
        try:
            for _ in range(2):
                run()
            torch.cuda.synchronize()
            with Operations() as operations:
                run()
            found = {"job": job, "ops": operations.rows()}
            if job.get("host"):
                found["host"] = _host_microseconds(run)
            append_line(out, found)
        except Exception as error:
            print(job, "FAILED", type(error).__name__, str(error)[:200], flush=True)


if __name__ == "__main__":
    main()
