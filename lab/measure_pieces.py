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
PIECES_MAX = 2000


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
        yield {"piece": kind, **sizes, "host": 1}, _recurrent(kind, **sizes)


def _recurrent(
    kind: str, times: int, batch: int, inputs: int, hidden: int, layers: int, directions: int, half: int,
    dropout: int, train: int,
) -> Callable[[], Any]:  # fmt: skip
    made: list[Any] = []
    dtype = HALF if half else torch.float32

    def run() -> None:
        if not made:
            options = {"bidirectional": directions == 2, "dropout": 0.3 * dropout * (layers > 1)}
            net = getattr(torch.nn, kind)(inputs, hidden, layers, **options).to("cuda", dtype)
            made.extend((net, _values(times, batch, inputs, dtype=dtype)))
        net, x = made
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


def shaped(draw: random.Random) -> Iterator[Piece]:
    """Pooling, resizing, norms, transforms and losses on images, sequences and volumes."""
    for kind in itertools.cycle(SHAPED):
        sizes = {
            "batch": draw.choice((2, 4, 8, 16, 32, 64)),
            "channels": draw.choice((8, 16, 32, 64, 128, 256)),
            "side": draw.choice((8, 14, 16, 28, 32, 56, 64, 112)),
            "half": draw.choice((0, 0, 1)),
        }
        if sizes["batch"] * sizes["channels"] * sizes["side"] ** 2 < 1e8:
            yield {"piece": kind, **sizes}, _shaped(kind, **sizes)


def _shaped(kind: str, batch: int, channels: int, side: int, half: int) -> Callable[[], Any]:
    def run() -> None:
        x = _values(batch, channels, side, side, dtype=HALF if half else torch.float32)
        out = SHAPED[kind](x)
        if out is not None:
            out.backward(torch.ones_like(out))

    return run


def _cube(x: Any) -> Any:
    """The same numbers as a volume, as deep as its side allows."""
    batch, channels, side, _ = x.shape
    return x.view(batch, -1, min(8, channels), side, side)


def _normed(kind: str, features: int, x: Any, **words: Any) -> Any:
    return getattr(torch.nn, kind)(features, **words).to(x.device, x.dtype)(x)


def _boxes(x: Any) -> Any:
    from torchvision.ops import roi_align

    corner = torch.rand(64, 2, device="cuda")
    found = torch.cat((torch.zeros(64, 1, device="cuda"), corner, corner + 4), 1)
    return roi_align(x.float(), found, 7)


SHAPED: dict[str, Callable[[Any], Any]] = {
    "max_pool2d": lambda x: functional.max_pool2d(x, 2),
    "max_pool_wide": lambda x: functional.max_pool2d(x, 3, 2, 1),
    "avg_pool2d": lambda x: functional.avg_pool2d(x, 2),
    "adaptive_pool": lambda x: functional.adaptive_avg_pool2d(x, 4),
    "adaptive_max": lambda x: functional.adaptive_max_pool2d(x, 2),
    "max_pool1d": lambda x: functional.max_pool1d(x.flatten(2), 2),
    "max_pool3d": lambda x: functional.max_pool3d(_cube(x), 2),
    "avg_pool3d": lambda x: functional.avg_pool3d(_cube(x), 2),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "trilinear": lambda x: functional.interpolate(_cube(x), scale_factor=2, mode="trilinear"),
    "nearest": lambda x: functional.interpolate(x, scale_factor=2),
    "bicubic": lambda x: functional.interpolate(x, scale_factor=2, mode="bicubic"),
    "grid_sample": lambda x: functional.grid_sample(
        x, torch.rand(*x.shape[:1], *x.shape[2:], 2, device="cuda", dtype=x.dtype), align_corners=False
    ),
    "pixel_shuffle": lambda x: functional.pixel_shuffle(x, 2),
    "unfold": lambda x: functional.unfold(x, 3, padding=1),
    "roll": lambda x: x.roll((2, 2), (2, 3)),
    "flip": lambda x: x.flip(-1),
    "pad": lambda x: functional.pad(x, (1, 1, 1, 1), mode="replicate"),
    "fft": lambda x: torch.fft.rfft2(x.float()).abs(),
    "stft": lambda x: torch.stft(
        x.float().flatten(2).flatten(0, 1),
        64,
        window=torch.hann_window(64, device="cuda"),
        return_complex=True,
    ).abs(),
    "batch_norm1d": lambda x: _normed("BatchNorm1d", x.shape[1], x.flatten(2)),
    "batch_norm_rows": lambda x: _normed("BatchNorm1d", x.shape[3], x.flatten(0, 2)),
    "batch_norm3d": lambda x: _normed("BatchNorm3d", _cube(x).shape[1], _cube(x)),
    "layer_norm": lambda x: _normed("LayerNorm", x.shape[1], x.permute(0, 2, 3, 1)),
    "layer_norm_rows": lambda x: _normed("LayerNorm", x.shape[-1], x),
    "normalize": lambda x: functional.normalize(x, dim=1),
    "std": lambda x: (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-5),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.flatten(1).log_softmax(-1),
    "pixels_loss": lambda x: functional.cross_entropy(
        x.float(), _indices(x.shape[1], x.shape[0], *x.shape[2:])
    ),
    "bce": lambda x: functional.binary_cross_entropy_with_logits(x, torch.ones_like(x)),
    "l1": lambda x: (
        functional.smooth_l1_loss(x, torch.ones_like(x)) + functional.l1_loss(x, torch.zeros_like(x))
    ),
    "mse": lambda x: functional.mse_loss(x, torch.zeros_like(x)),
    "kl": lambda x: functional.kl_div(x.log_softmax(1), x.detach().softmax(1), reduction="batchmean"),
    "cdist": lambda x: torch.cdist(x.float().flatten(2)[:, :, :64], x.float().flatten(2)[:, :, :64]),
    "einsum": lambda x: torch.einsum("bchw,bdhw->bcd", x, x),
    "attend": lambda x: (x @ x.transpose(-1, -2) / 8).softmax(-1) @ x,
    "silu": lambda x: functional.silu(functional.gelu(x)) * functional.mish(x),
    "glu": lambda x: functional.glu(x, 1),
    "prelu": lambda x: torch.nn.PReLU(x.shape[1]).to(x.device, x.dtype)(functional.softplus(x)),
    "dropout2d": lambda x: functional.dropout2d(functional.dropout(x, 0.1), 0.1),
    "where": lambda x: torch.where(x > 0, x, x * 0.1).masked_fill(x > 1, 0),
    "logic": lambda x: ((x > 0) & (x < 1)).float().sum() + x.argmax(1).float().mean() + x.abs().mean(),
    "trig": lambda x: torch.sin(x) * torch.cos(x) + torch.atan2(x, x + 1),
    "pow": lambda x: (x.pow(2) + 1).rsqrt() + x.norm(dim=1, keepdim=True),
    "mean": lambda x: x.mean((2, 3)) + x.amax((2, 3)) + x.var((2, 3)),
    "logsumexp": lambda x: x.float().logsumexp(1),
    "masked": lambda x: x[x.detach() > 0].sum(),
    "outer": lambda x: (x[:, :, :, None, 0] - x[:, :, None, :, 0]).pow(2).sum(-1),
    "embed": lambda x: torch.cat((x, x.roll(1, 0)), 1).permute(0, 2, 3, 1).contiguous(),
    "roi_align": lambda x: _boxes(x),
    "double": lambda x: torch.autograd.grad(x.tanh().pow(2).sum(), x, create_graph=True)[0].norm(),
}


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
    kinds = [
        recurrent(draw),
        indexed(draw),
        shaped(draw),
        convolved(draw),
        recurrent(draw),
        shaped(draw),
        stepped(draw),
    ]
    for kind in itertools.islice(itertools.cycle(kinds), PIECES_MAX):
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
