"""The kinds of calls whose host time `lab/measure_sweep.py` measures.

Each entry makes what its call needs, and returns the call.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

Call = Callable[[], Any]
F: Final = functional
GPU: Final = "cuda"
CHAIN: Final = 8
"""How many operations follow each other in a call that has several."""


def on_gpu(*shape: int, grad: bool = False, **words: Any) -> Any:
    return torch.randn(*shape, device=GPU, requires_grad=grad, **words)


def plain(act: Callable[[Any], Any], *shape: int) -> Callable[[], Call]:
    """Without gradients."""

    def make() -> Call:
        x = on_gpu(*shape)
        return lambda: act(x)

    return make


def trained(act: Callable[[Any], Any], *shape: int, back: bool = True) -> Callable[[], Call]:
    """With gradients: the forward pass, or both passes."""

    def make() -> Call:
        x = on_gpu(*shape, grad=True)

        def call() -> None:
            out = act(x)
            if back:
                out.sum().backward()
                x.grad = None

        return call

    return make


def net(made: Callable[[], nn.Module], *shape: int, mode: str = "both") -> Callable[[], Call]:
    """A module: `infer`, `forward` or `both` passes."""

    def make() -> Call:
        module, x = made().to(GPU), on_gpu(*shape)

        def call() -> None:
            with torch.set_grad_enabled(mode != "infer"):
                out = module(x)
            out = out[0] if isinstance(out, tuple) else out
            if mode == "both":
                out.sum().backward()
                module.zero_grad()

        return call

    return make


def chain(act: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for _ in range(CHAIN):
            x = act(x)
        return x

    return run


def autocast(act: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        with torch.autocast(GPU, dtype=torch.bfloat16):
            return act(x)

    return run


def stepper(kind: str, many: int, size: int) -> Call:
    """A step of an optimizer over some parameters of one size."""
    parameters = [nn.Parameter(on_gpu(size)) for _ in range(many)]
    for each in parameters:
        each.grad = torch.ones_like(each)
    name, *flags = kind.split()
    made = getattr(torch.optim, name)(
        parameters, lr=1e-4, **dict.fromkeys(flags, True), **({"momentum": 0.9} if "SGD" in name else {})
    )
    return lambda: made.step(lambda: torch.zeros((), device=GPU)) if name == "LBFGS" else made.step()


OPTIMIZERS: Final = (
    "SGD", "Adam", "AdamW", "AdamW fused", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax", "Adadelta",
)  # fmt: skip


def clipped(many: int = 60, size: int = 64) -> Call:
    parameters = [nn.Parameter(on_gpu(size)) for _ in range(many)]
    for each in parameters:
        each.grad = torch.ones_like(each)
    return lambda: nn.utils.clip_grad_norm_(parameters, 1.0)


def averaged() -> Call:
    """A moving average of parameters, one by one."""
    pairs = [(on_gpu(64), on_gpu(64)) for _ in range(60)]

    def call() -> None:
        with torch.no_grad():
            for kept, new in pairs:
                kept.mul_(0.99).add_(new, alpha=0.01)

    return call


def scaled() -> Call:
    module = nn.Sequential(*[nn.Linear(64, 64) for _ in range(10)]).to(GPU)
    made, scaler = torch.optim.SGD(module.parameters(), lr=0.1), torch.amp.GradScaler()
    x = on_gpu(16, 64)

    def call() -> None:
        scaler.scale(module(x).sum()).backward()
        scaler.step(made)
        scaler.update()

    return call


def checkpointed() -> Call:
    from torch.utils.checkpoint import checkpoint

    module, x = nn.Linear(64, 64).to(GPU), on_gpu(16, 64, grad=True)
    return lambda: checkpoint(module, x, use_reentrant=False).sum().backward()


def copied(count: int, *, pinned: bool = False) -> Callable[[], Call]:
    def make() -> Call:
        x = torch.ones(count)
        x = x.pin_memory() if pinned else x
        return lambda: x.to(GPU, non_blocking=pinned)

    return make


def layers(*made: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(*[each() for each in made])


def block() -> nn.Module:
    return nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:  # type: ignore[override]
        return gradient * 2


ACTS: Final[dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]]] = {
    "mul": (lambda x: x * 2.0, (64, 64)),
    "view": (lambda x: x.view(4, 16, 64), (64, 64)),
    "slice": (lambda x: x[:, 1:], (64, 64)),
    "transpose": (lambda x: x.transpose(0, 1), (64, 64)),
    "relu": (torch.relu, (64, 64)),
    "softmax": (lambda x: x.softmax(-1), (64, 64)),
    "layer_norm": (lambda x: F.layer_norm(x, (64,)), (64, 64)),
    "linear": (lambda x: F.linear(x, x), (64, 64)),
    "einsum": (lambda x: torch.einsum("ij,kj->ik", x, x), (64, 64)),
    "cat": (lambda x: torch.cat([x, x], 1), (64, 64)),
    "mean": (lambda x: x.mean(), (64, 64)),
    "to": (lambda x: x.to(torch.bfloat16), (64, 64)),
    "index": (lambda x: x[x.new_zeros(8, dtype=torch.long)], (64, 64)),
    "mask": (lambda x: x[x > 0], (64, 64)),
    "gather": (lambda x: x.gather(1, x.new_zeros(64, 8, dtype=torch.long)), (64, 64)),
    "topk": (lambda x: x.topk(4).values, (64, 64)),
    "sort": (lambda x: x.sort().values, (64, 64)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x), (2, 4, 32, 16)),
    "dropout": (F.dropout, (64, 64)),
    "loss": (lambda x: F.cross_entropy(x, x.new_zeros(64, dtype=torch.long)), (64, 64)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), (2, 4, 16, 16)),
    "max_pool": (lambda x: F.max_pool2d(x, 2), (2, 4, 16, 16)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (2, 4, 16, 16)),
    "conv": (lambda x: F.conv2d(x, x[:, :, :3, :3], padding=1), (4, 4, 16, 16)),
    "conv1d": (lambda x: F.conv1d(x, x[:, :, :3], padding=1), (4, 4, 64)),
    "conv3d": (lambda x: F.conv3d(x, x[:, :, :3, :3, :3], padding=1), (4, 4, 8, 8, 8)),
    "fft": (lambda x: torch.fft.rfft(x).abs(), (64, 64)),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT + 64 * torch.eye(64, device=GPU)), (64, 64)),
    "clamp in place": (lambda x: (x * 1.0).clamp_(0, 1), (64, 64)),
    "muls": (chain(lambda x: x * 2.0), (64, 64)),
    "linears": (chain(lambda x: F.linear(x, x)), (64, 64)),
    "views": (chain(lambda x: x.transpose(0, 1)), (64, 64)),
    "casts": (autocast(chain(lambda x: F.linear(x, x).float())), (64, 64)),
    "autocast": (autocast(lambda x: x), (64, 64)),
    "function": (Scale.apply, (64, 64)),
    "randn": (torch.randn_like, (64, 64)),
    "zeros": (torch.zeros_like, (64, 64)),
    "mse": (lambda x: F.mse_loss(x, x.detach()), (64, 64)),
    "where": (lambda x: torch.where(x > 0, x, 0.0), (64, 64)),
    "add_": (lambda x: x.detach().add_(1.0), (64, 64)),
    "stack": (lambda x: torch.stack([x, x]), (64, 64)),
}
WAITS: Final[dict[str, Callable[[], Call]]] = {
    "item": plain(lambda x: x.item(), 1),
    "item of a sum": plain(lambda x: x.sum().item(), 64, 64),
    "cpu": plain(lambda x: x.cpu(), 64, 64),
    "cpu 16 MiB": plain(lambda x: x.cpu(), 1 << 22),
    "tensor": lambda: lambda: torch.tensor([1.0, 2.0], device=GPU),
    "copy 4 KiB": copied(1 << 10),
    "copy 1 MiB": copied(1 << 18),
    "copy 16 MiB": copied(1 << 22),
    "copy 1 MiB pinned": copied(1 << 18, pinned=True),
    "copy 16 MiB pinned": copied(1 << 22, pinned=True),
    "nonzero": plain(torch.nonzero, 64, 64),
    "synchronize": lambda: torch.cuda.synchronize,
}
NETS: Final[dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]]] = {
    "10 linears": (layers(*[lambda: nn.Linear(64, 64)] * 10), (16, 64)),
    "10 linears and relus": (layers(*[lambda: nn.Linear(64, 64), nn.ReLU] * 10), (16, 64)),
    "10 convs": (layers(*[lambda: nn.Conv2d(8, 8, 3, padding=1)] * 10), (2, 8, 16, 16)),
    "10 conv1ds": (layers(*[lambda: nn.Conv1d(8, 8, 3, padding=1)] * 10), (2, 8, 64)),
    "10 transposed convs": (layers(*[lambda: nn.ConvTranspose2d(8, 8, 3, padding=1)] * 10), (2, 8, 16, 16)),
    "10 convs and norms": (
        layers(*[lambda: nn.Conv2d(8, 8, 3, padding=1), lambda: nn.BatchNorm2d(8), nn.ReLU] * 10),
        (2, 8, 16, 16),
    ),
    "10 grouped convs": (layers(*[lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8)] * 10), (2, 8, 16, 16)),
    "10 layer norms": (layers(*[lambda: nn.LayerNorm(64)] * 10), (16, 64)),
    "2 blocks": (layers(block, block), (2, 16, 64)),
    "lstm": (lambda: nn.LSTM(64, 64, 2, batch_first=True), (4, 16, 64)),
    "gru cell": (lambda: nn.GRUCell(64, 64), (4, 64)),
}
CALLS: Final[dict[str, Callable[[], Call]]] = {
    **{f"{name} infer": plain(act, *shape) for name, (act, shape) in ACTS.items()},
    **{f"{name} forward": trained(act, *shape, back=False) for name, (act, shape) in ACTS.items()},
    **{f"{name} both": trained(act, *shape) for name, (act, shape) in ACTS.items()},
    **{
        f"{name} {mode}": net(made, *shape, mode=mode)
        for name, (made, shape) in NETS.items()
        for mode in ("infer", "forward", "both")
    },
    **WAITS,
    **{
        f"{kind} of {many}": partial(stepper, kind, many, 64)
        for kind in (*OPTIMIZERS, "SGD nesterov", "LBFGS")
        for many in (1, 60)
    },
    "clip of 60": clipped,
    "average of 60": averaged,
    "scaler of 20": scaled,
    "checkpoint": checkpointed,
}
