"""CUDA's choices, taken on a machine without CUDA.

A CPU build of PyTorch cannot run a backward pass on fake CUDA tensors, so the step runs on fake CPU ones, and this mode
takes the decisions that differ: which attention kernel and how dropout keeps its mask (`kernels.py`), what autocast
casts (`autocast.py`), and that a script's `cuda` is the device there is (`pretending.py`). Each was checked against the
sequence of operations recorded on an H200 (docs/estimate.md).
"""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from teraflock.workload.tracing import kernels
from teraflock.workload.tracing.autocast import Autocast

REENTERED = frozenset({"multi_head_attention_forward"})
"""Python functions whose inner calls must be seen one by one."""


class CudaChoices(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.autocast = Autocast()
        self.enter_next = False
        """Set while a function of `REENTERED` is called: it must run itself instead of asking us again."""
        self.is_fast = False
        """Set where `nn.MultiheadAttention` may take its fast path, which it shuns while any mode looks on."""

    def within(self, function: Any) -> Any:
        """The function under these choices, also when autograd calls it again in the backward pass."""

        def called(*args: Any, **kwargs: Any) -> Any:
            if self in torch.overrides._get_current_function_mode_stack():
                return function(*args, **kwargs)
            with self:
                return function(*args, **kwargs)

        return called

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = on_cpu(kwargs) if kwargs else {}
        name = getattr(func, "__name__", "")
        if name in ("to", "cuda", "device") and args:
            args, kwargs, func = _moved(name, func, args, kwargs)
        if name in REENTERED:
            self.enter_next = True
            with self:
                return func(*args, **kwargs)
        if self.autocast.dtype is not None:
            if name == "cross_entropy" and not kwargs.get("label_smoothing"):
                return kernels.cross_entropy(*args, **kwargs)
            args, kwargs = self.autocast.cast(name, args, kwargs)
        if name == "__getitem__" and _whole(args[1]):
            return torch.ops.aten.alias(args[0])
        if (
            name == "__getitem__"
            and isinstance(args[1], tuple)
            and type(args[1][-1]) is int
            and _whole(args[1][:-1])
        ):
            return torch.ops.aten.select(args[0], len(args[1]) - 1, args[1][-1])
        if name == "dropout" and not kwargs.get("inplace"):
            return kernels.dropout(*args, **kwargs)
        if name == "interpolate" and kwargs.get("mode", "nearest") == "nearest" and args[0].dim() == 4:
            return kernels.nearest(*args, **kwargs)
        if name == "_native_multi_head_attention":
            query, _, _, _, heads, *weights = args[:9]
            return kernels.fast_attention(query, heads, *weights)
        if name == "scaled_dot_product_attention":
            return kernels.attention(*args, **kwargs)
        return func(*args, **kwargs)


def _whole(index: Any) -> bool:
    """Whether indexing takes everything: eager PyTorch then slices nothing, and keeps no backward for it."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        isinstance(part, slice) and part.start in (None, 0) and part.stop is None and part.step in (None, 1)
        for part in parts
    )


def is_cuda(value: Any) -> bool:
    return (isinstance(value, torch.device) and value.type == "cuda") or (
        isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))
    )


def on_cpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: "cpu" if key == "device" and is_cuda(value) else value for key, value in kwargs.items()}


def _moved(name: str, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    if name == "cuda" and isinstance(args[0], torch.Tensor):
        return args[:1], {}, lambda tensor: tensor
    if name == "to":
        args = tuple("cpu" if index and is_cuda(value) else value for index, value in enumerate(args))
    return args, kwargs, func
