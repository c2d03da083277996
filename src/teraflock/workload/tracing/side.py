"""Where a tensor is, and how operations run there.

- GPU: fake, with a storage that the recorder knows. Every operation on it is recorded.
- HOST: parameters of modules before they move to the GPU, CPU tensors above `REAL_BYTES_MAX`, and results copied back
  from the GPU. Also fake, but not recorded: host memory is not GPU memory.
- REAL: all other CPU tensors. They have values, so data loaders, numpy, indices and constructors run as usual.

To PyTorch all fake tensors are on the CPU, because a CPU build cannot run a backward pass on others. To the script
(`depth` 0) those on the GPU are on `cuda:0`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final

import torch
from torch._C import _functorch as functorch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

REAL_BYTES_MAX: Final = 64 << 20
"""A larger CPU tensor has a shape and no values, so that data and models of any size can be traced."""
BYTES_EACH: Final = 8
PINNED: Final = "teraflock_pinned"
"""Set on host tensors in pinned memory."""
GROWTH: Final = 16
"""The most that an operation on one tensor is assumed to enlarge its input, for example by repeating or padding."""


class Side(Enum):
    REAL = "real"
    HOST = "host"
    GPU = "gpu"


class Sides:
    def __init__(self, mode: FakeTensorMode, *, assume: bool = False) -> None:
        self.mode = mode
        self.assume = assume
        """For a script that never names a GPU: parameters and the inputs of modules count as being on it."""
        self.depth = 0
        """Above 0 while an operation runs: then PyTorch asks, not the script."""
        self.aim: Side | None = None
        """The device that the current call names, if any."""
        self.is_transfer = False
        """Whether the current call only copies from the host."""
        self.is_unblocked = False
        """Whether the current copy is `non_blocking`."""
        self.is_gpu_storage: Callable[[int], bool] = lambda key: False
        self.used_gpu = False
        """Whether the script ever named a GPU."""
        self.on_other_gpu: Callable[[], None] = lambda: None
        """Called when the script names another GPU than the first."""
        self.reads = 0
        """How often the script has read what a GPU would have computed."""

    def note_number(self, device: Any = None) -> None:
        number = device if type(device) is int else str(device).partition("cuda:")[2]
        if number and str(number) != "0":
            self.on_other_gpu()

    def of(self, tensor: Any) -> Side:
        tensor = unwrapped(tensor)
        if not isinstance(tensor, FakeTensor):
            return Side.REAL
        return Side.GPU if self.is_gpu(tensor) else Side.HOST

    def is_gpu(self, tensor: Any) -> bool:
        tensor = unwrapped(tensor)
        if not isinstance(tensor, FakeTensor):
            return False
        try:
            return self.is_gpu_storage(torch._C.TensorBase.untyped_storage(tensor)._cdata)
        except (NotImplementedError, RuntimeError):  # sparse tensors have no storage of their own
            return True

    @contextmanager
    def aimed(self, side: Side | None, *, transfer: bool = False, unblocked: bool = False) -> Iterator[None]:
        before = self.aim, self.is_transfer, self.is_unblocked
        self.aim, self.is_transfer, self.is_unblocked = side, transfer, unblocked
        try:
            yield
        finally:
            self.aim, self.is_transfer, self.is_unblocked = before

    def transfer_attributes(self, tensor: Any) -> list[int]:
        """Of a copy to the GPU: whether the memory is pinned, and whether the host goes on without the copy."""
        return [int(getattr(tensor, PINNED, False)), int(self.is_unblocked)]

    def of_operation(self, func: Any, args: Any, kwargs: Any) -> Side:
        given = tensors_in(args)
        if given and func._schema.is_mutable and not isinstance(given[0], FakeTensor):
            return Side.REAL  # whatever is written there: values stay values
        if given and _writes(func, args) and self.of(args[0]) is Side.HOST:
            return Side.HOST  # also with a sparse gradient, which has no storage to tell where it is
        if self.aim is not None:
            return self.aim
        found = Side.REAL
        for each in given or tensors_in(kwargs):
            if isinstance(each, FakeTensor):
                if self.is_gpu(each):
                    return Side.GPU
                found = Side.HOST
        return found

    def on_host(self, func: Any, args: Any, kwargs: Any) -> Any:
        given = tensors_in((args, kwargs))
        has_fake = any(isinstance(each, FakeTensor) for each in given)
        if has_fake and func._schema.is_mutable and not isinstance(given[0], FakeTensor):
            # Keep known values where unknown ones would overwrite them.
            return args[0] if isinstance(args[0], torch.Tensor) else None
        if has_fake or self.aim is Side.HOST or self._is_large(func, args, kwargs, given):
            return self.run_fake(func, args, kwargs)
        return func(*args, **kwargs)

    def run_fake(self, func: Any, args: Any, kwargs: Any) -> Any:
        with self.mode:
            return func(*args, **kwargs)

    def hosted(self, tensor: Any) -> Any:
        """A fake host tensor that replaces a real one."""
        with torch.no_grad(), self.mode:
            return torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, layout=tensor.layout, device="cpu"
            )

    def _is_large(self, func: Any, args: Any, kwargs: Any, given: list[Any]) -> bool:
        if func.is_view or func._schema.is_mutable:
            return False
        if _has_symbol((args, kwargs)):
            return True
        if given and _bytes_at_most(func, given) <= REAL_BYTES_MAX:
            return False
        try:
            with torch.no_grad(), self.mode:
                made = func(*args, **kwargs)
        except Exception:  # operations without a fake form run for real
            return False
        return any(each.numel() * each.element_size() > REAL_BYTES_MAX for each in tensors_in(made))


def _writes(func: Any, args: Any) -> bool:
    """Whether an operation changes its first argument, a dense tensor, in place."""
    is_dense = isinstance(args[0], torch.Tensor) and args[0].layout is torch.strided
    return is_dense and bool(func._schema.is_mutable) and func._schema.name.endswith("_")


def _bytes_at_most(func: Any, given: list[Any]) -> int:
    """An upper bound for the size of a result: that of equal shapes, otherwise what broadcasting allows."""
    sizes = sorted(each.numel() for each in given)
    if func._schema.name in ("aten::cat", "aten::stack"):
        return sum(sizes) * BYTES_EACH
    if len(given) == 1 or (len({each.shape for each in given}) == 1 and given[0].dim() < 2):
        return sizes[-1] * GROWTH * BYTES_EACH
    return sizes[-1] * max(GROWTH, sizes[-2]) * BYTES_EACH


def unwrapped(tensor: Any) -> Any:
    """The tensor within those that `torch.func` puts around it, one for each `grad` or `vmap`."""
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor


def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in tensors_in(each)]
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in tensors_in(each)]
    return []


def _has_symbol(value: Any) -> bool:
    if isinstance(value, torch.SymInt):
        return True
    if isinstance(value, (list, tuple)):
        return any(_has_symbol(each) for each in value)
    if isinstance(value, dict):
        return any(_has_symbol(each) for each in value.values())
    return False
