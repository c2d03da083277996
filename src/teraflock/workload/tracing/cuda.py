"""CUDA's choices on a machine without CUDA.

A CPU build of PyTorch cannot run a backward pass on fake CUDA tensors. So the step runs on fake CPU tensors, and this
mode makes the choices that differ: attention kernels and dropout masks (`kernels.py`), casts of autocast
(`autocast.py`), moves between host and GPU, and the values that a script reads (`reading.py`). Each kernel was
compared with the sequence of operations recorded on an H200 (lab/diary.md).
"""

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

from teraflock.workload.tracing import kernels, recurrent
from teraflock.workload.tracing.autocast import Autocast
from teraflock.workload.tracing.reading import TraceReading
from teraflock.workload.tracing.side import Side, Sides, tensors_in

REENTERED = frozenset({"multi_head_attention_forward"})
"""Python functions whose inner calls must be seen individually."""
GPU = torch.device("cuda", 0)


class CudaChoices(TorchFunctionMode):
    def __init__(self, sides: Sides | None = None, reading: TraceReading | None = None) -> None:
        super().__init__()
        self.sides = sides
        self.reading = reading
        self.autocast = Autocast(sides)
        self.inside = 0
        """Above 0 while PyTorch runs one of its own functions: queries then do not come from the script."""
        self.enter_next = False
        """Set while a function of `REENTERED` is called: it must run itself and not call the mode again."""
        self.creates_on_gpu = False
        """Set by `torch.set_default_device("cuda")`."""
        self.is_fast = False
        """Set if `nn.MultiheadAttention` may use its fast path, which it avoids while a mode is active."""

    def within(self, function: Any) -> Any:
        """Run the function with these choices, also when autograd calls it in the backward pass."""

        def called(*args: Any, **kwargs: Any) -> Any:
            inside, self.inside = self.inside, 0
            sides = self.sides
            aim = sides.aim if sides is not None else None
            if sides is not None and sides.used_gpu:
                sides.aim = Side.GPU  # tensors that autograd creates are where the gradients are
            try:
                if self in torch.overrides._get_current_function_mode_stack():
                    return function(*args, **kwargs)
                with self:
                    return function(*args, **kwargs)
            finally:
                self.inside = inside
                if sides is not None:
                    sides.aim = aim

        return called

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in REENTERED:
            self.enter_next = True
            with self:
                return func(*args, **kwargs)
        self.inside += 1
        try:
            if self.sides is None:
                return self._chosen(name, *_without_cuda(name, func, args, kwargs))
            return self._placed(name, func, args, kwargs)
        finally:
            self.inside -= 1

    def _placed(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """Handle calls that move tensors or name a device. Others run where their tensors are."""
        sides, reading = self.sides, self.reading
        assert sides is not None
        if sides.is_transfer or name == "_parse_to":  # the latter reads the arguments of `Module.to`
            return func(*args, **kwargs)
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}  # pinning needs a driver
        if reading is not None and args:
            answer = reading.answer(name, func, args, kwargs)
            if answer is not NotImplemented:
                return answer
        if name in MOVES and args and isinstance(args[0], torch.Tensor):
            return _moved(sides, name, func, args, kwargs)
        if self.creates_on_gpu and kwargs.get("device") is None and func in _device_constructors():
            kwargs = {**kwargs, "device": GPU}
        if kwargs.get("device") is not None:
            sides.note_number(kwargs["device"])
            side = side_of(kwargs["device"])
            if side is not None:
                return self._created(sides, side, func, args, kwargs)
        is_gpu = any(sides.is_gpu(each) for each in tensors_in((args, kwargs)))
        aim = sides.aim
        sides.aim = (
            Side.GPU if is_gpu else None
        )  # tensors that a function creates internally are where its inputs are
        try:
            return self._chosen(name, func, args, kwargs) if is_gpu else func(*args, **kwargs)
        finally:
            sides.aim = aim

    def _created(self, sides: Sides, side: Side, func: Any, args: Any, kwargs: Any) -> Any:
        """A call that names a device. On the host it creates values, unless it starts from a tensor without."""
        kwargs = {**kwargs, "device": "cpu"}
        if side is not Side.GPU and not any(sides.is_gpu(each) for each in tensors_in((args, kwargs))):
            return func(*args, **kwargs)
        sides.used_gpu |= side is Side.GPU
        with sides.aimed(side):
            out = func(*args, **kwargs)
            if side is Side.GPU and isinstance(out, torch.Tensor) and sides.of(out) is not Side.GPU:
                out = moved_to(sides, out, Side.GPU)  # `as_tensor` and `tensor` start with values
        return out

    def _known(self, tensor: Any) -> Any:
        if not isinstance(tensor, FakeTensor):
            return tensor
        return self.reading.known.of(tensor) if self.reading is not None else None

    def _rows(self, lengths: Any, shape: Any, *, batch_first: bool) -> tuple[Any, Any]:
        assert self.sides is not None
        with self.sides.aimed(None):
            return kernels.rows_of(lengths, shape, batch_first=batch_first)

    def _padded(self, data: Any, sizes: Any, batch_first: bool, value: float, length: int) -> tuple[Any, Any]:
        assert self.sides is not None
        with self.sides.aimed(None):
            lengths = (sizes[:, None] > torch.arange(int(sizes[0]))).sum(0)
        times, batch = max(len(sizes), length), len(lengths)
        shape = (batch, times) if batch_first else (times, batch)
        places = self._rows(lengths, shape, batch_first=batch_first)[1]
        return kernels.padded(data, shape, places, value), lengths

    def _chosen(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """An operation on the GPU, as CUDA runs it."""
        if self.autocast.dtype is not None:
            if name == "cross_entropy" and not kwargs.get("label_smoothing"):
                return kernels.cross_entropy(*args, **kwargs)
            args, kwargs = self.autocast.cast(name, args, kwargs)
        if name == "__getitem__" and _whole(args[1]):
            return torch.ops.aten.alias(args[0])
        if (
            name == "__getitem__"
            and isinstance(args[1], tuple)
            and args[1]
            and type(args[1][-1]) is int
            and _whole(args[1][:-1])
        ):
            return torch.ops.aten.select(args[0], len(args[1]) - 1, args[1][-1])
        if name == "dropout" and not kwargs.get("inplace"):
            return kernels.dropout(*args, **kwargs)
        if name == "interpolate" and kwargs.get("mode", "nearest") == "nearest" and args[0].dim() == 4:
            return kernels.nearest(*args, **kwargs)
        if name == "rms_norm" and kernels.has_fused_rms_norm(*args, **kwargs):
            return kernels.rms_norm(*args, **kwargs)
        if name == "ctc_loss":
            args, kwargs = kernels.with_length_tensors(args, kwargs)
        if name == "_native_multi_head_attention":
            query, _, _, _, heads, *weights = args[:9]
            return kernels.fast_attention(query, heads, *weights)
        if name == "_pack_padded_sequence" and (lengths := self._known(args[1])) is not None:
            return kernels.packed(args[0], self._rows(lengths, args[0].shape, batch_first=args[2]))
        if name == "_pad_packed_sequence":
            return self._padded(*args)
        if name == "scaled_dot_product_attention":
            return kernels.attention(*args, **kwargs)
        if name in recurrent.MODES:
            return recurrent.layer(name, func, args)
        if name in recurrent.CELLS:
            return recurrent.cell(name, *args, **kwargs)
        return func(*args, **kwargs)


def _whole(index: Any) -> bool:
    """Whether an index selects everything: eager PyTorch then slices nothing and keeps no backward for it."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        isinstance(part, slice) and part.start in (None, 0) and part.stop is None and part.step in (None, 1)
        for part in parts
    )


MOVES = frozenset({"to", "cuda", "cpu", "type"})
_TYPES = {
    "FloatTensor": torch.float32,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "DoubleTensor": torch.float64,
    "LongTensor": torch.int64,
    "IntTensor": torch.int32,
    "ByteTensor": torch.uint8,
    "BoolTensor": torch.bool,
}


def side_of(device: Any) -> Side | None:
    """`None` for other devices, such as `meta`."""
    if is_cuda(device) or (isinstance(device, int) and not isinstance(device, bool)):
        return Side.GPU
    return Side.HOST if str(device).partition(":")[0] == "cpu" else None


def is_cuda(value: Any) -> bool:
    return (isinstance(value, torch.device) and value.type == "cuda") or (
        isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))
    )


def on_cpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: "cpu" if key == "device" and is_cuda(value) else value for key, value in kwargs.items()}


def _without_cuda(name: str, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """If everything counts as being on the GPU, naming it changes nothing."""
    kwargs = on_cpu(kwargs)
    if name == "cuda" and args and isinstance(args[0], torch.Tensor):
        return (lambda tensor: tensor), args[:1], {}
    if name == "to":
        args = tuple("cpu" if index and is_cuda(value) else value for index, value in enumerate(args))
    return func, args, kwargs


def _moved(sides: Sides, name: str, func: Any, args: Any, kwargs: Any) -> Any:
    tensor, rest = args[0], list(args[1:])
    if name == "type":
        return _retyped(sides, func, args, kwargs)
    if name in ("cuda", "cpu"):
        sides.note_number(*rest[:1])
        there = Side.GPU if name == "cuda" else Side.HOST
        return moved_to(sides, tensor, there, unblocked=_is_unblocked(rest, kwargs))
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    for each in rest:
        if isinstance(each, torch.dtype):
            dtype = each
        elif isinstance(each, torch.Tensor):
            device, dtype = (GPU if sides.is_gpu(each) else "cpu"), each.dtype
        elif isinstance(each, (str, torch.device)) or (isinstance(each, int) and not isinstance(each, bool)):
            device = each
    sides.note_number(device)
    side = None if device is None else side_of(device)
    if side is None or (side is Side.GPU) == sides.is_gpu(tensor):
        if device is not None and side is not None:
            rest = [each for each in rest if not isinstance(each, (str, torch.device, int, torch.Tensor))]
            kwargs = {key: value for key, value in kwargs.items() if key not in ("device", "other")}
            rest = [each for each in rest if not isinstance(each, torch.dtype)]
            kwargs["dtype"] = dtype or tensor.dtype
        return func(tensor, *rest, **kwargs)
    unblocked = _is_unblocked(rest, kwargs)
    return moved_to(sides, tensor, side, dtype, kwargs.get("memory_format"), unblocked=unblocked)


def _is_unblocked(rest: list[Any], kwargs: Any) -> bool:
    return bool(kwargs.get("non_blocking")) or any(each is True for each in rest)


def moved_to(
    sides: Sides,
    tensor: Any,
    side: Side,
    dtype: Any = None,
    memory_format: Any = None,
    *,
    unblocked: bool = False,
) -> Any:
    """A copy on the other side, or the tensor itself if it is already there."""
    if (side is Side.GPU) == sides.is_gpu(tensor):
        return tensor if dtype is None else tensor.to(dtype)
    sides.used_gpu |= side is Side.GPU
    sides.reads += side is Side.HOST
    with sides.aimed(side, transfer=True, unblocked=unblocked):
        return torch.ops.aten._to_copy.default(tensor, dtype=dtype, memory_format=memory_format)


def _retyped(sides: Sides, func: Any, args: Any, kwargs: Any) -> Any:
    """`x.type(torch.cuda.FloatTensor)`, and the name that `x.type()` returns."""
    wanted = args[1] if len(args) > 1 else kwargs.get("dtype")
    if wanted is None:
        known = func(*args, **kwargs)
        return known.replace("torch.", "torch.cuda.") if sides.is_gpu(args[0]) else known
    word = wanted if isinstance(wanted, str) else getattr(wanted, "teraflock_type", "")
    if word.startswith("torch.cuda."):
        return moved_to(sides, args[0], Side.GPU, _TYPES.get(word.rpartition(".")[2]))
    return func(*args, **kwargs)
