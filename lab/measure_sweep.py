"""Measures single operators, recurrent layers and the host's calls: `python -m lab.measure_sweep OUT SECONDS`.

Each line of OUT has the operators of one group and precision, forward and backward, in the format of `ops` in
`measured/README.md`; or the recurrent layers; or the host's microseconds for each kind of call. Further
arguments are names of groups: then only their operators, the last ones first. Needs only PyTorch.
"""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import torch
from torch.nn import functional

from lab.measure import AHEAD_CYCLES, Operations
from lab.probe import probe
from lab.rows import append_line
from lab.sweep_calls import CALLS, OPTIMIZERS, clipped, stepper

Call = Callable[..., Any]
F: Final = functional

GRIDS: Final = (
    (64, 1024), (4096, 256), (65536, 64), (16384, 1024), (1 << 20, 32), (8192, 4096), (256, 50000), (4 << 20, 3),
    (1, 1 << 22), (32, 512, 512), (16, 12, 128, 128), (512, 17, 80),
)  # fmt: skip
LONG: Final = ((1 << 16,), (1 << 20,), (1 << 23,), (1 << 26,))
IMAGES: Final = (
    (8, 64, 56, 56), (32, 64, 112, 112), (16, 256, 28, 28), (4, 3, 512, 512), (64, 512, 7, 7), (2, 32, 256, 256),
)  # fmt: skip
VOLUMES: Final = ((2, 16, 32, 64, 64), (4, 64, 16, 28, 28), (1, 32, 96, 96, 96))
SEQUENCES: Final = ((16, 64, 4096), (8, 512, 1024), (64, 128, 256), (512, 96, 64))

REDUCTIONS: Final[dict[str, Call]] = {
    "sum": lambda x: x.sum(),
    "sum last": lambda x: x.sum(-1),
    "sum first": lambda x: x.sum(0),
    "mean": lambda x: x.mean(),
    "mean last": lambda x: x.mean(-1, keepdim=True),
    "mean first": lambda x: x.mean(0),
    "var": lambda x: x.var(-1),
    "std first": lambda x: x.std(0),
    "max": lambda x: x.max(),
    "max last": lambda x: x.max(-1).values,
    "amax": lambda x: x.amax(-1),
    "argmax": lambda x: x.argmax(-1),
    "norm": lambda x: x.norm(),
    "norm last": lambda x: x.norm(dim=-1),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "softmax first": lambda x: x.softmax(0),
    "cumsum": lambda x: x.cumsum(-1),
    "any": lambda x: (x > 0).any(-1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
    "topk": lambda x: x.topk(2, -1).values,
    "sort": lambda x: x.sort(-1).values,
    "cross_entropy": lambda x: F.cross_entropy(
        x.flatten(0, -2), torch.randint(x.shape[-1], (x[..., 0].numel(),))
    ),
    "triu": lambda x: x.triu(),
    "flip": lambda x: x.flip(-1),
    "transposed": lambda x: x.transpose(-1, -2).contiguous(),
    "repeat": lambda x: x.repeat_interleave(2, -1),
    "cat": lambda x: torch.cat([x, x], -1),
    "cat first": lambda x: torch.cat([x, x]),
    "stack": lambda x: torch.stack([x, x], -1),
    "slice": lambda x: x[..., : x.shape[-1] // 2] * 1.0,
    "broadcast": lambda x: x * x[..., :1] + x[:1],
    "half": lambda x: x.to(torch.bfloat16),
    "double": lambda x: x.to(torch.float32),
    "strided": lambda x: x[..., ::2] * 2.0,
    "gather": lambda x: x.gather(-1, torch.randint(x.shape[-1], (*x.shape[:-1], min(x.shape[-1], 16)))),
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.0),
    "dropout": lambda x: F.dropout(x),
    "glu": lambda x: F.glu(x[..., : x.shape[-1] // 2 * 2], -1),
    "chunk": lambda x: torch.cat(x.chunk(3, -1)[::-1], -1),
    "linear": lambda x: F.linear(x, torch.ones(64, x.shape[-1], dtype=x.dtype)),
}
PLAIN: Final = (
    "exp", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "erf", "abs", "square", "sign", "reciprocal",
    "floor", "expm1", "selu", "relu", "neg", "isnan", "logit",
)  # fmt: skip
ACTIVATIONS: Final = (
    "softplus", "elu", "mish", "leaky_relu", "logsigmoid", "hardtanh", "hardswish", "relu6", "gelu", "silu", "celu",
    "softsign",
)  # fmt: skip
POINTWISE: Final[dict[str, Call]] = {
    **{name: getattr(torch, name) for name in PLAIN},
    **{name: getattr(F, name) for name in ACTIVATIONS},
    "pow 2": lambda x: x**2,
    "pow 3": lambda x: x**3,
    "pow": lambda x: x.abs() ** 1.5,
    "clamp": lambda x: x.clamp(-1, 1),
    "lerp": lambda x: x.lerp(x * 2, 0.1),
    "addcmul": lambda x: torch.addcmul(x, x, x),
    "maximum": lambda x: torch.maximum(x, -x),
    "where": lambda x: torch.where(x > 0, x, x * 2),
    "atan2": lambda x: torch.atan2(x, x + 1),
    "mse": lambda x: F.mse_loss(x, x.detach() + 1),
    "l1": lambda x: F.l1_loss(x, x.detach() + 1),
    "smooth_l1": lambda x: F.smooth_l1_loss(x, x.detach() + 1),
    "huber": lambda x: F.huber_loss(x, x.detach() + 1),
    "bce": lambda x: F.binary_cross_entropy(x.float().sigmoid(), torch.ones_like(x, dtype=torch.float32)),
    "bce logits": lambda x: F.binary_cross_entropy_with_logits(x, torch.ones_like(x)),
    "kl": lambda x: F.kl_div(x, x.detach().sigmoid(), reduction="batchmean"),
    "rand": lambda x: x + torch.rand_like(x),
    "randn": lambda x: x + torch.randn_like(x),
    "zeros": lambda x: x + torch.zeros_like(x) + torch.full_like(x, 2.0),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort().values,
    "topk": lambda x: x.topk(100).values,
    "randperm": lambda x: torch.randperm(x.shape[0]),
    "index": lambda x: x[torch.randint(x.shape[0], (x.shape[0] // 4,))],
}
ON_IMAGES: Final[dict[str, Call]] = {
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "instance_norm": F.instance_norm,
    "group_norm": lambda x: F.group_norm(x, 1 if x.shape[1] % 8 else 8),
    "relu": torch.relu,
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "smaller": lambda x: F.interpolate(x, scale_factor=0.5, mode="area"),
    "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive max": lambda x: F.adaptive_max_pool2d(x, 1),
    "reflect": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replicate": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "zero pad": lambda x: F.pad(x, (1, 1, 1, 1)),
    "unfold": lambda x: F.unfold(x, 3, padding=1) if x.numel() < 1 << 23 else x,
    "shuffle": lambda x: F.pixel_unshuffle(x, 2) if x.shape[-1] % 2 == 0 else x,
    "last": lambda x: last(x) * 2,
    "tokens": lambda x: x.flatten(2).transpose(1, 2).contiguous(),
    "roll": lambda x: x.roll((3, 3), (2, 3)),
    "cat": lambda x: torch.cat([x, x], 1),
    "softmax": lambda x: x.softmax(1),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.randint(x.shape[1], (x.shape[0], *x.shape[2:]))),
    "mean": lambda x: x.mean((2, 3)),
    "sum": lambda x: x.sum((0, 2, 3)),
    "scale": lambda x: x * x.mean((2, 3), keepdim=True),
    "sample": lambda x: F.grid_sample(
        x, torch.rand(x.shape[0], *x.shape[2:], 2, dtype=x.dtype), align_corners=False
    ),
    "depthwise 3": lambda x: conv(2, x, x.shape[1], 3, groups=x.shape[1]),
    "depthwise 7": lambda x: conv(2, x, x.shape[1], 7, groups=x.shape[1]),
    "depthwise 3 stride": lambda x: conv(2, x, x.shape[1], 3, 2, groups=x.shape[1]),
    "depthwise 7 last": lambda x: conv(2, last(x), x.shape[1], 7, groups=x.shape[1]),
    "1x1": lambda x: conv(2, x, 64, 1),
    "3x3": lambda x: conv(2, x, 64, 3),
    "3x3 few": lambda x: conv(2, x, 3, 3),
    "3x3 stride": lambda x: conv(2, x, 128, 3, 2),
    "4x4 stride": lambda x: conv(2, x, 64, 4, 2),
    "3x3 dilated": lambda x: conv(2, x, 64, 3, dilation=4),
    "5x5": lambda x: conv(2, x, 32, 5),
    "9x9": lambda x: conv(2, x, 32, 9),
    "grouped": lambda x: conv(2, x, x.shape[1], 3, groups=x.shape[1] // 16 or 1),
    "transposed 2": lambda x: F.conv_transpose2d(
        x, torch.ones(x.shape[1], 32, 2, 2, dtype=x.dtype), stride=2
    ),
    "transposed 4": lambda x: F.conv_transpose2d(
        x, torch.ones(x.shape[1], 32, 4, 4, dtype=x.dtype), stride=2, padding=1
    ),
    "3x3 last": lambda x: conv(2, last(x), 64, 3),
    "3x3 stride last": lambda x: conv(2, last(x), 128, 3, 2),
    "4x4 stride last": lambda x: conv(2, last(x), 64, 4, 2),
    "1x1 last": lambda x: conv(2, last(x), 128, 1),
    "1x1 stride last": lambda x: conv(2, last(x), 128, 1, 2),
    "batch_norm last": lambda x: F.batch_norm(last(x), None, None, training=True),
    "max_pool last": lambda x: F.max_pool2d(last(x), 3, 2, 1),
    "bilinear last": lambda x: F.interpolate(last(x), scale_factor=2, mode="bilinear"),
    "relu last": lambda x: torch.relu(last(x)),
    "transposed last": lambda x: F.conv_transpose2d(
        last(x), last(torch.ones(x.shape[1], 32, 2, 2, dtype=x.dtype)), stride=2
    ),
    "pixels": lambda x: F.pixel_shuffle(x, 2) if x.shape[1] % 4 == 0 else x,
    "fft": lambda x: torch.fft.rfft2(x.float()).abs(),
}
ON_VOLUMES: Final[dict[str, Call]] = {
    "3x3x3": lambda x: conv(3, x, 32, 3),
    "3x3x3 wide": lambda x: conv(3, x, 64, 3),
    "3x3x3 stride": lambda x: conv(3, x, 64, 3, 2),
    "1x1x1": lambda x: conv(3, x, 32, 1),
    "few": lambda x: conv(3, x[:, :1], 16, 3),
    "transposed": lambda x: F.conv_transpose3d(
        x, torch.ones(x.shape[1], 16, 2, 2, 2, dtype=x.dtype), stride=2
    ),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "instance_norm": F.instance_norm,
    "max_pool": lambda x: F.max_pool3d(x, 2),
    "avg_pool": lambda x: F.adaptive_avg_pool3d(x, 1),
    "trilinear": lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"),
    "group_norm": lambda x: F.group_norm(x, 8),
}
ON_SEQUENCES: Final[dict[str, Call]] = {
    "3": lambda x: conv(1, x, 128, 3),
    "3 dilated": lambda x: conv(1, x, x.shape[1], 3, dilation=8),
    "2 dilated": lambda x: conv(1, x, 64, 2, dilation=64),
    "1": lambda x: conv(1, x, 256, 1),
    "10 stride": lambda x: conv(1, x, 512, 10, 5),
    "80 stride": lambda x: conv(1, x[:, :1], 128, 80, 4),
    "depthwise": lambda x: conv(1, x, x.shape[1], 31, groups=x.shape[1]),
    "grouped": lambda x: conv(1, x, x.shape[1], 127, groups=16),
    "transposed": lambda x: F.conv_transpose1d(x, torch.ones(x.shape[1], 64, 4, dtype=x.dtype), stride=2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "max_pool": lambda x: F.max_pool1d(x, 4),
    "linear": lambda x: F.interpolate(x, scale_factor=2, mode="linear"),
    "fft": lambda x: torch.fft.irfft(torch.fft.rfft(x.float())),
    "stft": lambda x: torch.stft(
        x[:, 0].float(), 512, 128, window=torch.ones(512), return_complex=True
    ).abs(),
    "ctc": lambda x: ctc(x[:, :32].float().permute(2, 0, 1)),
    "weight_norm": lambda x: torch._weight_norm(x, x[..., :1, :1], 0),
    "attention": lambda x: heads(x, 64, None),
    "attention narrow": lambda x: heads(x, 32, None),
    "attention wide": lambda x: heads(x, 128, None),
    "attention causal": lambda x: heads(x, 64, None, is_causal=True),
    "attention masked": lambda x: heads(x, 64, torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool)),
    "attention biased": lambda x: heads(x, 64, torch.zeros(x.shape[-1], x.shape[-1], dtype=x.dtype)),
    "attention dropped": lambda x: heads(x, 64, None, dropout_p=0.1),
}
TABLES: Final = (
    *((rows, width, 4096) for rows in (1000, 100_000, 2_000_000) for width in (1, 16, 128)),
    *((rows, width, 1 << 18) for rows in (1000, 100_000, 2_000_000) for width in (1, 16, 128)),
    (50_000, 768, 8192),
    (4096, 512, 65536),
)  # fmt: skip
"""Rows, numbers in a row, and how many rows are picked."""
ON_TABLES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "embedding": lambda table, at: F.embedding(at, table),
    "embedding_bag": lambda table, at: F.embedding_bag(at.view(-1, 8), table, mode="sum"),
    "index": lambda table, at: table[at],
    "index_select": lambda table, at: table.index_select(0, at),
    "gather": lambda table, at: table.gather(0, at.view(-1, 1).expand(-1, table.shape[1])),
    "index_add": lambda table, at: table.index_add(0, at, table.detach()[at]),
    "scatter_add": lambda table, at: torch.zeros_like(table).scatter_add(
        0, at.view(-1, 1).expand(-1, table.shape[1]), table[at]
    ),
    "scatter_max": lambda table, at: torch.zeros_like(table).scatter_reduce(
        0, at.view(-1, 1).expand(-1, table.shape[1]), table[at], "amax"
    ),
    "one_hot": lambda table, at: F.one_hot(at % 100, 100),
    "bincount": lambda table, at: torch.bincount(at, minlength=table.shape[0]),
    "searchsorted": lambda table, at: torch.searchsorted(torch.arange(table.shape[0]), at),
}
SQUARES: Final = ((1, 32), (1, 512), (1, 2048), (64, 8), (64, 64), (4096, 3), (16, 256))
"""How many, and their side."""
ON_SQUARES: Final[dict[str, Call]] = {
    "cholesky": torch.linalg.cholesky,
    "inv": torch.linalg.inv,
    "solve": lambda x: torch.linalg.solve(x, x[..., :1]),
    "det": torch.linalg.slogdet,
    "triangular": lambda x: torch.linalg.solve_triangular(x.tril(), x, upper=False),
    "eigh": lambda x: torch.linalg.eigh(x)[0] if x.shape[-1] <= 512 else x,
    "qr": lambda x: torch.linalg.qr(x)[0],
    "svd": lambda x: torch.linalg.svdvals(x) if x.shape[-1] <= 64 else x,
    "product": lambda x: x @ x,
    "cdist": lambda x: torch.cdist(x, x.detach()),
}


def conv(dims: int, x: Any, out: int, side: int, stride: int = 1, **words: Any) -> Any:
    kernel = torch.full((out, x.shape[1] // words.get("groups", 1), *[side] * dims), 0.01, dtype=x.dtype)
    if x.dim() == 4 and not x.is_contiguous():
        kernel = last(kernel)
    padding = words.get("dilation", 1) * (side - 1) // 2
    act = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    return act(x, kernel.requires_grad_(), stride=stride, padding=padding, **words)


def last(x: Any) -> Any:
    return x.to(memory_format=torch.channels_last)


def ctc(x: Any) -> Any:
    times, batch, _ = x.shape
    labels, lengths = torch.ones(batch, times // 8, dtype=torch.long), [times // 8] * batch
    return F.ctc_loss(x.log_softmax(-1), labels, [times] * batch, lengths)


def heads(x: Any, width: int, mask: Any, **words: Any) -> Any:
    split = x.unflatten(1, (-1, width)).transpose(-1, -2) if x.shape[1] >= width else None
    return None if split is None else F.scaled_dot_product_attention(split, split, split, mask, **words)


def calls() -> Iterator[tuple[str, str, list[Callable[[], Any]]]]:
    """Group, precision and calls. Tensors are made when a call is made."""
    groups = (
        ("reductions", REDUCTIONS, GRIDS), ("pointwise", POINTWISE, LONG), ("images", ON_IMAGES, IMAGES),
        ("volumes", ON_VOLUMES, VOLUMES), ("sequences", ON_SEQUENCES, SEQUENCES),
    )  # fmt: skip
    yield "tables", "fp32", [_on_table(act, *each) for act in ON_TABLES.values() for each in TABLES]
    yield "squares", "fp32", [_on_squares(act, *each) for act in ON_SQUARES.values() for each in SQUARES]
    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        for group, acts, shapes in groups:
            made = [_on(act, shape, dtype) for act in acts.values() for shape in shapes]
            yield group, precision, made
    yield "norms", "fp32", [lambda sizes=sizes: clipped(*sizes)() for sizes in STEPPED]  # type: ignore[misc]
    yield "optimizers", "fp32", [_stepped(each, *sizes) for each in OPTIMIZERS for sizes in STEPPED]


STEPPED: Final = ((60, 1 << 18), (8, 1 << 23))


def _stepped(kind: str, many: int, size: int) -> Callable[[], Any]:
    return lambda: stepper(kind, many, size)()


def _on(act: Call, shape: tuple[int, ...], dtype: torch.dtype) -> Callable[[], Any]:
    return lambda: _back(act(torch.randn(shape, dtype=dtype).requires_grad_()))


def _on_table(act: Callable[[Any, Any], Any], rows: int, width: int, picks: int) -> Callable[[], Any]:
    return lambda: _back(act(torch.randn(rows, width).requires_grad_(), torch.randint(rows, (picks,))))


def _on_squares(act: Call, many: int, side: int) -> Callable[[], Any]:
    def call() -> None:
        root = torch.randn(many, side, side)
        _back(act((root @ root.mT + side * torch.eye(side)).requires_grad_()))

    return call


def _back(made: Any) -> None:
    for each in made if isinstance(made, tuple) else (made,):
        if isinstance(each, torch.Tensor) and each.grad_fn is not None and each.is_floating_point():
            each.backward(torch.ones_like(each), retain_graph=True)


def recorded(made: list[Callable[[], Any]], end: float) -> list[list[Any]]:
    """Each call runs once to load its kernels, then twice to be timed."""
    rows = []
    for call in made:
        if time.monotonic() > end:
            break
        try:
            call()
            torch.cuda.synchronize()
            with Operations() as operations:
                call()
                call()
            rows += operations.rows()
        except Exception as error:
            print("FAILED", str(error)[:150], flush=True)
    return rows


RECURRENT: Final = [
    (kind, batch, times, width, layers, both, dtype)
    for dtype in (torch.float32, torch.bfloat16)
    for kind in ("LSTM", "GRU", "RNN")
    for batch, times, width, layers, both in (
        (32, 100, 256, 1, False), (64, 200, 512, 2, False), (16, 400, 512, 2, True), (256, 30, 128, 1, False),
        (20, 35, 1024, 2, False), (128, 64, 64, 1, True), (64, 70, 650, 2, False), (128, 60, 400, 2, True),
        (512, 48, 512, 1, False), (20, 600, 512, 1, True),
    )
]  # fmt: skip


def recurrent(
    kind: str, batch: int, times: int, width: int, layers: int, both: bool, dtype: Any
) -> list[Any]:
    """Microseconds of the forward and the backward pass, bytes that the first keeps beside its results, and bytes at
    the peak of each pass beyond what it found."""
    net = getattr(torch.nn, kind)(width, width, layers, batch_first=True, bidirectional=both).to(dtype)
    x = torch.randn(batch, times, width, dtype=dtype)
    best = [1e9, 1e9]
    for _ in range(4):
        found = [torch.cuda.memory_allocated()]
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        torch.cuda._sleep(AHEAD_CYCLES)
        torch.cuda.reset_peak_memory_stats()
        marks[0].record()
        out, ends = net(x)
        marks[1].record()
        found += [torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()]
        torch.cuda.reset_peak_memory_stats()
        out.sum().backward()
        marks[2].record()
        torch.cuda.synchronize()
        best = [min(best[at], 1e3 * marks[at].elapsed_time(marks[at + 1])) for at in range(2)]
        made = [out, *(ends if isinstance(ends, tuple) else [ends])]
        kept = found[1] - found[0] - sum(each.nbytes for each in made)
        memory = [kept, found[2] - found[0], torch.cuda.max_memory_allocated() - found[1]]
        del out, ends, made
    return [kind, batch, times, width, layers, both, str(dtype), *best, *memory]


ROUNDS, REPEATED = 5, 60


def on_host() -> list[list[Any]]:
    """For each kind of call: microseconds in the best and the median round, and the probe beside the latter."""
    found = []
    for name, make in CALLS.items():
        try:
            call, rounds = make(), []
            for _ in range(ROUNDS + 1):
                torch.cuda.synchronize()
                before, start = probe(), time.perf_counter()
                for _ in range(REPEATED):
                    call()
                rounds.append((1e6 * (time.perf_counter() - start) / REPEATED, before))
            rounds = sorted(rounds[1:])
            found.append([name, round(rounds[0][0], 2), *(round(n, 2) for n in rounds[ROUNDS // 2])])
        except Exception as error:
            print("FAILED", name, str(error)[:150], flush=True)
    return found


def main() -> None:
    out, end, only = Path(sys.argv[1]), time.monotonic() + float(sys.argv[2]), sys.argv[3:]
    if not only:
        host = on_host()
        append_line(out, {"job": {"model": "host"}, "calls": host})
        print(len(host), "kinds of calls", flush=True)
    torch.set_default_device("cuda")  # from here on only: it costs the host time in each call
    if not only or "recurrent" in only:
        append_line(out, {"job": {"model": "recurrent"}, "layers": [recurrent(*each) for each in RECURRENT]})
    groups = [each for each in calls() if each[0] in only][::-1] if only else calls()
    for group, precision, made in groups:
        rows = recorded(made, end)
        append_line(out, {"job": {"model": group, "precision": precision}, "ops": rows})
        print(group, precision, len(rows), "operators", f"{end - time.monotonic():.0f} s left", flush=True)


if __name__ == "__main__":
    main()
