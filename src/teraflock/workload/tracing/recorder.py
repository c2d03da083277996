"""Records every operation of a run under FakeTensorMode, and the allocation and release of every storage.

It is above FakeTensorMode, so it sees what PyTorch's dispatcher sees after autograd: forward operations, backward
operations and the optimizer's. A storage is allocated by the operation that returns it, and released when Python and
autograd drop it, which is when CUDA's allocator would get it back.
"""

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensor
from torch.nn.parameter import is_lazy
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from teraflock.workload.expression import Expression
from teraflock.workload.trace import (
    EVENT_KINDS,
    READ_VALUE,
    TO_GPU,
    TO_HOST,
    EventKind,
    Mark,
    Parameter,
    Tensor,
    Trace,
    TracedOperation,
)
from teraflock.workload.tracing.attributes import attributes_of, name_of
from teraflock.workload.tracing.known import KnownValues
from teraflock.workload.tracing.leaves import Leaves
from teraflock.workload.tracing.shapes import SHAPED, grouped
from teraflock.workload.tracing.side import Side, Sides, unwrapped
from teraflock.workload.tracing.sizes import expression_of
from teraflock.workload.tracing.unknown import boxes_kept

DTYPES = {
    torch.float32: "f",
    torch.bfloat16: "b",
    torch.float16: "h",
    torch.float64: "d",
    torch.int64: "l",
    torch.int32: "i",
    torch.int16: "s",
    torch.uint8: "u",
    torch.int8: "u",
    torch.bool: "?",
    torch.complex64: "z",
}
FULL_MASKS = ("aten::all", "aten::eq", "aten::_is_all_true")
"""A truth value from one of these, on integers, is assumed to be true: masks are full, positions are in order. Other
comparisons than with 1 are not: a generated token does not end its text, and sequences are unfinished."""
ORS = frozenset({"aten::bitwise_or", "aten::bitwise_or_", "aten::logical_or", "aten::logical_or_"})
"""These keep a doubt: a text that has not ended yet has not ended with the next token either."""
UNSEEN = ("prim", "prims", "profiler")
"""Namespaces of operators that start no kernel."""
SILENT = {"detach", "alias", "_unsafe_view", "_reshape_alias", "lift_fresh", "record_stream", "is_same_size"}
SELECTING: Final = frozenset({"aten::nonzero", "torchvision::nms", "aten::index"})
ZEROS: Final = frozenset({"aten::zeros", "aten::new_zeros"})
FILLED: Final = frozenset({"aten::index_add", "aten::index_put", "aten::scatter", "aten::scatter_add"})
"""Autograd fills zeros by these in place, but for tensors with a mode it makes a second tensor."""
COMPOSITE: Final = torch._C.DispatchKey.CompositeImplicitAutograd


def _is_composite(func: Any) -> bool:
    # Asked of C++: some operators, such as batch norms, have a kernel of this kind in Python only.
    return func.namespace == "aten" and bool(
        torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), COMPOSITE)
    )


class Recorder(TorchDispatchMode):
    """Without `sides`, every tensor is fake already and counts as being on the GPU; with it, see `side.py`."""

    def __init__(self, sides: Sides | None = None) -> None:
        super().__init__()
        self.expressions: list[Expression] = []
        self.operations: list[TracedOperation] = []
        self.events: list[int] = []
        self.kinds: list[str] = []
        self.views = 0
        self._is_forward = True
        self._records = True
        """Whether the operations before were recorded for a backward pass."""
        self._detached = 0
        """The storage that was detached last."""
        self._zeros: Any = None
        """The result of the last operation, if it created zeros."""
        self.paused = False
        self.phase = "b"
        self.sides = sides
        self.known = KnownValues(is_on=sides is not None and sides.mode.shape_env is None)
        self.on_assumed: Callable[[], None] = lambda: None
        self.leaves = Leaves()
        self._expression_index: dict[Any, int] = {}
        self._operation_index: dict[Any, int] = {}
        self._number_by_storage: dict[int, int] = {}
        self._references: dict[int, Any] = {}
        self._all: set[int] = set()
        """Storages of truth values that are assumed to be true."""
        self._doubted: set[int] = set()
        """Storages of comparisons that are assumed to be false."""
        if sides is not None:
            sides.is_gpu_storage = self._number_by_storage.__contains__

    # What the dispatcher calls for every operation.
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled() and _is_composite(func):
            with self:  # without this mode, autograd has divided it into its parts by now
                return func._op_dk(COMPOSITE, *args, **kwargs)
        if (sides := self.sides) is None:
            return self._on_gpu(func, args, kwargs)
        if func is torch.ops.aten._local_scalar_dense.default:
            return self._guessed(args[0]) if isinstance(args[0], FakeTensor) else func(*args)
        if sides.aim is Side.HOST and sides.is_transfer:
            self.waited(args[0], TO_HOST)
            if (values := self.known.of(args[0])) is not None:
                return values.to(kwargs.get("dtype") or values.dtype, copy=True)
        sides.depth += 1
        try:
            if sides.of_operation(func, args, kwargs) is not Side.GPU:
                return sides.on_host(func, args, kwargs)
            if sides.aim is Side.GPU and sides.is_transfer:
                out = sides.run_fake(func, args, kwargs)
                if not isinstance(out, torch.Tensor):
                    return out  # a question, such as where the tensor is
                self.birth(out if out.layout is torch.strided else self._entries(args[0], out))
                self.known.copied(args[0], out)
                if not self.paused:
                    self._operate(TO_GPU, [args[0]], [out], sides.transfer_attributes(args[0]))
                return out
            return self._on_gpu(func, args, kwargs)
        finally:
            sides.depth -= 1

    def _on_gpu(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return self._guessed(args[0])
        zeros, self._zeros = self._zeros, None
        if (
            self.phase == "t"
            and func._schema.name in FILLED
            and args[0] is zeros
            and not torch.is_grad_enabled()
        ):
            func = getattr(getattr(torch.ops.aten, f"{func._opname}_"), func._overloadname)
        del zeros  # else it would be counted as long as the next operation runs
        out = self._made(func, args, kwargs)
        self._zeros = out if func._schema.name in ZEROS else None
        self.known.follow(func, args, kwargs, out)
        if func._schema.name in FULL_MASKS and not args[0].is_floating_point():
            self._believe_mask(func._schema.name, args, out)
        elif func._schema.name in ORS and any(self._is_doubted(each) for each in args):
            self._doubted.add(out.untyped_storage()._cdata)
        if self.paused or func.namespace in UNSEEN:
            return out
        name = func._schema.name.split("::")[1]
        outputs = [each for each in _flat(out) if isinstance(each, torch.Tensor)]
        if func.is_view or name in SILENT:
            self._count_view(name, args[0])
            for tensor in outputs:
                self.birth(tensor)
            return out
        inputs = [each for each in _flat((args, kwargs.values())) if isinstance(each, torch.Tensor)]
        for tensor in outputs:
            self.birth(tensor)
        if outputs or inputs:
            self._mark_plain(inputs)
            if self.leaves.is_on and self._is_forward and torch.is_grad_enabled():
                self.leaves.see(inputs)
            attributes = attributes_of(name, args)
            if name.startswith("_foreach") or name.startswith("_fused_"):
                attributes = [len(each) for each in _lists(args)[:1]]
                inputs, outputs = self._foreach_group(args), []
            self._operate(name_of(func, name), inputs, outputs, attributes)
        if torch.Tag.dynamic_output_shape in func.tags and not (name == "index" and _has_no_mask(args[1])):
            self.waited(args[0])  # PyTorch reads how many there are
        return out

    def _mark_plain(self, inputs: list[Any]) -> None:
        """Mark where operations begin or cease to be recorded for a backward pass."""
        records = torch.is_grad_enabled() and any(each.requires_grad for each in inputs)
        if self.sides is not None and self._is_forward and records != self._records:
            self._records = records
            self.events.append((Mark.RECORDED if records else Mark.PLAIN) * EVENT_KINDS + EventKind.MARK)

    def waited(self, tensor: Any, name: str = READ_VALUE) -> None:
        """The script, or PyTorch, needs a value from the GPU now."""
        before = self.events[-1:]
        if not self.paused:
            self._operate(name, [tensor], [], [])
            if self.events[-1:] == before:  # the next number of the same tensor, as in `tolist`
                self.events.pop()

    def _count_view(self, name: str, tensor: Any) -> None:
        """Before PyTorch 2.8, a gradient is detached twice in a row where newer versions do it once."""
        key = tensor.untyped_storage()._cdata if name == "detach" and tensor.layout is torch.strided else 0
        self.views += not key or key != self._detached
        self._detached = key

    def _made(self, func: Any, args: Any, kwargs: Any) -> Any:
        shaped = SHAPED.get(func._schema.name)
        if shaped is not None:
            return shaped(*args, **(kwargs if shaped is grouped else {}))
        if self.sides is None:
            return func(*args, **kwargs)
        values = self.known.shaping(func, args, kwargs)
        if values is not None:
            return pytree.tree_map(self.sides.hosted, values)
        if func._schema.name == "aten::index":
            args = (args[0], [place for each in args[1] for place in self._positions(each)])
        if func._schema.name == "aten::masked_select" and (mask := self.known.of(args[1])) is not None:
            selected = mask.expand(torch.broadcast_shapes(args[0].shape, mask.shape)).sum()
            return self.sides.hosted(torch.empty(int(selected), dtype=args[0].dtype))
        if func._schema.name == "aten::_ctc_loss" and (longest := self._longest(args[3])):
            times, batch = args[0].shape[:2]
            shapes = ([batch], [batch, times, 2 * longest + 1])
            return tuple(self.sides.hosted(torch.empty(each, dtype=args[0].dtype)) for each in shapes)
        try:
            return self.sides.run_fake(func, args, kwargs)
        except DynamicOutputShapeException:
            if func._schema.name not in SELECTING or not (every := boxes_kept()):
                raise
            return self._boxes(func, args, every)

    def _longest(self, lengths: Any) -> int:
        values = self.known.of(lengths) if isinstance(lengths, torch.Tensor) else torch.tensor(lengths)
        return 0 if values is None else int(values.max())

    def _boxes(self, func: Any, args: Any, every: int) -> Any:
        """Boxes of a detection model count as kept: its code then takes as many as it is set to."""
        assert self.sides is not None
        self.on_assumed()
        if func._schema.name == "aten::nonzero":
            values = self._assumed(args[0], every).nonzero()
        elif func._schema.name == "torchvision::nms":
            values = torch.arange(args[0].shape[0])
        else:
            for each in args[1]:
                if isinstance(each, FakeTensor) and each.dtype == torch.bool and self.known.of(each) is None:
                    self._assumed(each, every)
            places = [place for each in args[1] for place in self._positions(each)]
            return self.sides.run_fake(func, (args[0], places), {})
        made = self.sides.hosted(values)
        self.known.keep(made, values)
        return made

    def _assumed(self, mask: Any, every: int) -> Any:
        values = torch.zeros(mask.numel(), dtype=mask.dtype)
        values[: -(-mask.numel() // every)] = 1
        values = values.view(mask.shape)
        self.known.keep(mask, values)
        return values

    def _positions(self, index: Any) -> list[Any]:
        if not isinstance(index, torch.Tensor) or index.dtype not in (torch.bool, torch.uint8):
            return [index]
        values = self.known.of(index)
        return [index] if values is None else list(values.nonzero(as_tuple=True))

    def _believe_mask(self, name: str, args: Any, out: Any) -> None:
        is_one = name == "aten::eq" and isinstance(args[1], int) and args[1] == 1
        is_believed = is_one or (name != "aten::eq" and not self._is_doubted(args[0]))
        key = out.untyped_storage()._cdata
        (self._all if is_believed else self._doubted).add(key)

    def _is_doubted(self, tensor: Any) -> bool:
        return isinstance(tensor, FakeTensor) and tensor.untyped_storage()._cdata in self._doubted

    def believe(self, tensor: Any) -> None:
        """Assumed true if a script asks: that a loss is finite."""
        self._all.add(tensor.untyped_storage()._cdata)

    def birth(self, tensor: Any, kind: str = "") -> None:
        """Record the allocation of a tensor's storage, unless it is known already."""
        if tensor.layout is not torch.strided or tensor.device.type == "meta":
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._number_by_storage:
            return
        number = len(self.kinds)
        self._number_by_storage[key] = number
        self._references[key] = weakref.ref(storage, lambda _: self._death(key, number))
        self.kinds.append(kind or self.phase)
        self.events.append(self._size_index(tensor, storage) * EVENT_KINDS + EventKind.ALLOCATE)

    def position(self) -> tuple[int, int, int]:
        return len(self.events), len(self.kinds), self.views

    def repeat(self, begin: tuple[int, int, int], end: tuple[int, int, int]) -> None:
        """Record again what happened between two positions, apart from storages that outlived it."""
        (first, born, views), (last, _, views_then) = begin, end
        self.views += views_then - views
        part = [(event, event % EVENT_KINDS, event // EVENT_KINDS) for event in self.events[first:last]]
        passing, count = set(), born
        for _, kind, argument in part:
            count += kind == EventKind.ALLOCATE
            if kind == EventKind.FREE:
                passing.add(count - argument)
        numbers: dict[int, int] = {}
        for event, kind, argument in part:
            if kind == EventKind.ALLOCATE:
                if born in passing:
                    numbers[born] = len(self.kinds)
                    self.kinds.append(self.kinds[born])
                    self.events.append(event)
                born += 1
            elif kind != EventKind.FREE:
                self.events.append(event)
            elif born - argument in numbers:
                self.events.append((len(self.kinds) - numbers[born - argument]) * EVENT_KINDS + kind)

    def _entries(self, source: Any, copy: Any) -> Any:
        """The memory of a sparse tensor, which has no storage of its own: positions and values of its entries."""
        assert self.sides is not None
        if source.layout is torch.sparse_coo:
            parts = [source._indices(), source._values()]
        else:
            parts = [source.values(), *_compressed(source)]
        with self.sides.mode:
            copy.teraflock_entries = torch.empty(sum(each.nbytes for each in parts), dtype=torch.uint8)
        return copy.teraflock_entries

    def mark(self, mark: Mark) -> None:
        self._is_forward, self._records = mark in (Mark.STEP, Mark.FORWARD), True
        self.events.append(mark * EVENT_KINDS + EventKind.MARK)

    def tag(self, tensors: Iterable[Any], kind: str) -> None:
        for tensor in tensors:
            number = self._number(tensor)
            if number is not None:
                self.kinds[number] = kind

    def kind(self, tensor: Any) -> str:
        """The kind of a tensor's memory; empty if it has none on the GPU."""
        number = self._number(tensor)
        return "" if number is None else self.kinds[number]

    def _number(self, tensor: Any) -> int | None:
        tensor = unwrapped(tensor)
        if tensor.layout is not torch.strided or is_lazy(tensor):
            return None
        return self._number_by_storage.get(tensor.untyped_storage()._cdata)

    def parameter(self, tensor: Any) -> Parameter:
        return Parameter(
            [self.index(each) for each in tensor.shape], DTYPES[tensor.dtype], tensor.requires_grad
        )

    def index(self, value: Any) -> int:
        """The index of a size among the expressions of the trace."""
        key = value if isinstance(value, int) else str(value)
        known = self._expression_index.get(key)
        if known is None:
            known = self._expression_index[key] = len(self.expressions)
            self.expressions.append(expression_of(value))
        return known

    def _guessed(self, tensor: Any) -> Any:
        self.waited(tensor)
        return self.guess(tensor)

    def guess(self, tensor: Any) -> Any:
        """What a script reads from a tensor without values: a loss of 1, true for `all`, otherwise false."""
        values = self.known.readable(tensor)
        if values is not None:
            return values.item()
        if tensor.dtype == torch.bool:
            return tensor.untyped_storage()._cdata in self._all
        return 1.0 if tensor.is_floating_point() else 1

    def _death(self, key: int, number: int) -> None:
        if self._number_by_storage.get(key) != number:
            return
        del self._number_by_storage[key], self._references[key]
        self._all.discard(key)
        self._doubted.discard(key)
        self.events.append((len(self.kinds) - number) * EVENT_KINDS + EventKind.FREE)

    def _size_index(self, tensor: Any, storage: Any) -> int:
        size = storage.nbytes()
        return self.index(size if isinstance(size, (int, torch.SymInt)) else int(size))

    def _operate(self, name: str, inputs: list[Any], outputs: list[Any], attributes: list[int]) -> None:
        operation = TracedOperation(
            name, [self._described(t) for t in inputs], [self._described(t) for t in outputs], attributes
        )
        key = (name, str(operation.inputs), str(operation.outputs), str(attributes))
        known = self._operation_index.get(key)
        if known is None:
            known = self._operation_index[key] = len(self.operations)
            self.operations.append(operation)
        self.events.append(known * EVENT_KINDS + EventKind.OPERATE)

    def _described(self, tensor: Any) -> Tensor:
        if isinstance(tensor, Tensor):
            return tensor
        return Tensor(
            DTYPES.get(tensor.dtype, "f"),
            [self.index(each) for each in tensor.shape],
            tensor.layout is not torch.strided or bool(tensor.is_contiguous()),
        )

    def _foreach_group(self, args: Any) -> list[Tensor]:
        """A list operation as one flattened tensor per list: only the bytes matter."""
        return [
            Tensor(DTYPES.get(group[0].dtype, "f"), [self.index(sum(t.numel() for t in group))])
            for group in _lists(args)
        ]


def _lists(args: Any) -> list[Any]:
    """The arguments that are lists of tensors."""
    groups = [each for each in args if isinstance(each, (list, tuple)) and each]
    return [each for each in groups if isinstance(each[0], torch.Tensor)]


def _has_no_mask(positions: Any) -> bool:
    return all(each is None or each.dtype not in (torch.bool, torch.uint8) for each in positions)


def _compressed(tensor: Any) -> list[Any]:
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices()]
    return [tensor.ccol_indices(), tensor.row_indices()]


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)) or type(value).__name__ == "dict_values":
        return [leaf for each in value for leaf in _flat(each)]
    return [value]


__all__ = ["Recorder", "Trace", "expression_of"]
