"""What a script gets when it reads a tensor without values: placeholders, with a note where it matters."""

from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor

from teraflock.workload.tracing.known import KnownValues
from teraflock.workload.tracing.side import PINNED, REAL_BYTES_MAX, Side, Sides
from teraflock.workload.tracing.unknown import Notes, formatted, refuse_use, unknown_type

_PROPERTIES: Final = {
    torch.Tensor.is_cuda.__get__: True,
    torch.Tensor.is_cpu.__get__: False,
}


class TraceReading:
    def __init__(self, sides: Sides, notes: Notes) -> None:
        self.sides = sides
        self.notes = notes
        self.unknown = unknown_type(notes)
        self.believe: Any = lambda tensor: None
        self.guess: Any = lambda tensor: False
        self.waited: Any = lambda tensor: None
        self.known = KnownValues(is_on=False)
        self._reads = 0

    def answer(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of the call, or NotImplemented if it should run unchanged."""
        tensor = args[0]
        if name in ("pin_memory", "share_memory_") and isinstance(tensor, torch.Tensor):
            if name == "pin_memory":
                setattr(tensor, PINNED, True)
            return tensor
        if not isinstance(tensor, FakeTensor):
            return NotImplemented
        if name == "__get__":
            return _PROPERTIES.get(func, NotImplemented) if self.sides.is_gpu(tensor) else NotImplemented
        if name in WAITS and self.sides.is_gpu(tensor):
            self.waited(tensor)
        self.sides.reads += name in KNOWN
        if name in KNOWN and (values := self.known.readable(tensor)) is not None:
            return func(values, *args[1:], **kwargs)
        read = getattr(self, f"_{name.strip('_')}", None) if name in READS else None
        return NotImplemented if read is None else read(tensor, args, kwargs)

    def _item(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        if tensor.numel() != 1:
            return NotImplemented
        if tensor.dtype == torch.bool:
            return bool(self.guess(tensor))
        return self.unknown(1.0)

    def _tolist(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        return self._nested(list(tensor.shape))

    def _nested(self, shape: list[int]) -> Any:
        return [self._nested(shape[1:]) for _ in range(shape[0])] if shape else self.unknown(1.0)

    def _numpy(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        """Ones, as many as there are elements. Above the limit, one element that is shown everywhere."""
        import numpy

        if self.sides.of(tensor) is Side.GPU:
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory"
                " first."
            )
        kind = numpy.dtype(str(tensor.dtype).removeprefix("torch."))
        if tensor.numel() * kind.itemsize > REAL_BYTES_MAX:
            return numpy.broadcast_to(numpy.ones((), kind), tuple(tensor.shape))
        return numpy.ones(tuple(tensor.shape), kind)

    def _array(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        return self._numpy(tensor, args, kwargs)

    def _format(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        return formatted(args[1]) if tensor.dim() == 0 else self._repr(tensor, args, kwargs)

    def _repr(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        where = ", device='cuda:0'" if self.sides.is_gpu(tensor) else ""
        return f"tensor(?, size={tuple(tensor.shape)}, dtype={tensor.dtype}{where})"

    _str = _repr

    def _index(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        raise refuse_use(self.notes, "a size, an index or a loop bound")

    def _int(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        return int(self.unknown(1.0))

    def _float(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        """Not twice the same number in a row: a loss that does not change counts as converged."""
        self._reads += 1
        return 1.0 - 1e-3 * (self._reads % 2)

    def _bool(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        if tensor.numel() != 1:
            return NotImplemented
        if tensor.dtype != torch.bool:
            return False
        known = bool(self.guess(tensor))
        self.notes.add(
            f"a condition on a value that only a GPU would compute counts as {str(known).lower()}",
            key="condition",
            line=True,
        )
        return known

    def _equal(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        return self.unknown(1.0) == 0.0

    def _allclose(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        """Scripts ask it to check themselves."""
        return True

    def _data_ptr(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        return int(tensor.untyped_storage()._cdata)

    def _get_device(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        return 0 if self.sides.is_gpu(tensor) else -1

    def _is_pinned(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        return False

    def _isfinite(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        made = torch.ops.aten.eq.Tensor(tensor, tensor)
        self.believe(made)
        return made

    def _deepcopy(self, tensor: Any, args: Any, kwargs: Any) -> Any:
        memo = args[1]
        if id(tensor) in memo:
            return memo[id(tensor)]
        with torch.no_grad():
            copy = tensor.detach().clone()
        copy.requires_grad_(tensor.requires_grad)
        if isinstance(tensor, torch.nn.Parameter):
            copy = torch.nn.Parameter(copy, tensor.requires_grad)
        memo[id(tensor)] = copy
        return copy


KNOWN: Final = frozenset(("item", "tolist", "__format__", "__index__", "__int__", "__float__", "__bool__"))
"""Answered with the real values, where they are known."""
WAITS: Final = KNOWN | {"__repr__", "__str__", "equal", "allclose"}
"""The host waits until the GPU has computed the value."""
READS: Final = frozenset(
    [
        "item",
        "tolist",
        "numpy",
        "__array__",
        "__format__",
        "__repr__",
        "__str__",
        "__index__",
        "__int__",
        "__float__",
        "__bool__",
        "data_ptr",
        "get_device",
        "is_pinned",
        "isfinite",
        "equal",
        "allclose",
        "__deepcopy__",
    ]
)
