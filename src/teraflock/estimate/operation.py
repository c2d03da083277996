"""What an operation of a trace computes and moves: its family, floating-point operations and bytes.

Workspace and time are computed from this view only. The sizes of the tensors are already known.
"""

from collections.abc import Sequence
from math import prod
from typing import Final

from teraflock.workload.trace import DTYPE_BYTES, READ_VALUE, TO_GPU, TO_HOST, TracedOperation

MATMULS: Final = {"mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "dot", "_grouped_mm"}
NO_KERNEL: Final = {
    "empty",
    "empty_like",
    "new_empty",
    "empty_strided",
    "new_empty_strided",
    "resize_",
}


class Work:
    """One operation with its sizes. `family` selects the curve, `dims` the position on it. `tensors` is how many a list
    operation has, or how many cells a recurrent layer; 0 if unknown."""

    __slots__ = ("bytes", "dims", "dtype", "family", "flops", "kernel", "name", "odd", "tensors")

    def __init__(
        self, name: str, family: str, dtype: str, flops: float, moved: float, dims: tuple[float, ...]
    ) -> None:
        self.name = name
        self.family = family
        self.dtype = dtype
        self.flops = flops
        self.bytes = moved
        self.dims = dims
        self.tensors = 0
        self.kernel = True
        self.odd = False


def work_of(operation: TracedOperation, sizes: Sequence[int]) -> Work:
    shapes = [(t.dtype, [sizes[i] for i in t.shape], t.contiguous) for t in operation.inputs]
    outputs = [(t.dtype, [sizes[i] for i in t.shape], t.contiguous) for t in operation.outputs]
    return work(operation.name, shapes, outputs, operation.attributes)


Shaped = tuple[str, list[int], bool]


def work(name: str, inputs: Sequence[Shaped], outputs: Sequence[Shaped], attributes: Sequence[int]) -> Work:
    base = name.split(".")[0]
    if base in WAITS:
        return _wait(base, inputs, attributes)
    moved = sum(_bytes(each) for each in (*inputs, *outputs))
    dtype = _dtype(inputs or outputs)
    if base in NO_KERNEL or not any(
        prod(shape) for _, shape, _ in (*outputs, *inputs)[: len(outputs) or None]
    ):
        # No output, or an empty one: an empty batch starts no kernel.
        made = Work(base, "none", dtype, 0.0, 0.0, ())
        made.kernel = False
        return made
    if base in MATMULS:
        return _matmul(base, inputs, outputs, moved)
    if base.startswith("convolution"):
        return _convolution(base, inputs, outputs, attributes, moved)
    if "attention" in base and any(len(each[1]) == 4 for each in inputs):
        return _attention(base, inputs, moved, causal=bool(attributes and attributes[0]))
    if base.startswith("_cudnn_rnn"):
        return _recurrent(base, dtype, inputs, attributes, moved)
    if base in INDEXED and _picks(inputs[1:]):
        return _indexed(base, dtype, [_position(each) for each in inputs], outputs)
    if base in BOXED:
        numbers = prod(inputs[0][1]) / BOXED[base]
        return Work(base, "bytes", dtype, 0.0, moved, (1.0, 0.0, numbers))
    if base == "embedding_dense_backward":
        moved += float(prod(outputs[0][1]) * DTYPE_BYTES.get(outputs[0][0], 4)) if outputs else 0.0
    if base == "embedding" and outputs:
        moved = 2.0 * prod(outputs[0][1]) * DTYPE_BYTES.get(outputs[0][0], 4)
    if base == "cat":
        inputs = outputs  # the measurements have its inputs as a list without shapes
    if base in ("native_batch_norm", "cudnn_batch_norm") and len(outputs) > 1 and not prod(outputs[1][1]):
        base = "batch_norm_eval"
    if base in POINTWISE:
        whole = [(kind, shape) for kind, shape, _ in inputs if shape]
        if len({kind in HALVES for kind, _ in whole if kind in FLOATS}) > 1:
            dtype = "m"
        if any(shape != whole[0][1] for _, shape in whole):
            base += ".broadcast"
    if base in NORMS:
        inputs = [(kind, _image(shape), contiguous) for kind, shape, contiguous in inputs]
    row, strided, channels = _tail(inputs or outputs)
    if strided and base in LAST_NORMS:
        base, row = f"{base}{LAST_NORM}", 1.0
    made = Work(base, "bytes", dtype, 0.0, moved, (row, strided, channels))
    if base.startswith(LISTS) and attributes:
        made.tensors = attributes[0]
    return made


LISTS: Final = ("_foreach", "_fused")
"""Name prefixes of operations on lists of tensors. In a recorded trace they belong to the script's own optimizer, or
scale its gradients."""


WAITS: Final = frozenset({READ_VALUE, TO_GPU, TO_HOST})
EMBEDDED_BYTES_MAX: Final = 64 << 10
"""CUDA takes so many bytes from any memory of the host without waiting."""


def _wait(name: str, inputs: Sequence[Shaped], attributes: Sequence[int]) -> Work:
    """Something between host and GPU. The dims: whether the host waits until the GPU has nothing left to do, and
    whether the memory is pinned."""
    moved = 0.0 if name == READ_VALUE else sum(_bytes(each) for each in inputs)
    is_pinned, is_unblocked = attributes or (0, 0)
    waits = not is_unblocked or (not is_pinned and moved > EMBEDDED_BYTES_MAX)
    made = Work(name, "none", _dtype(inputs), 0.0, moved, (float(waits), float(is_pinned)))
    made.kernel = False
    return made


LAST_NORMS: Final = frozenset(
    {"native_batch_norm", "native_batch_norm_backward", "cudnn_batch_norm", "cudnn_batch_norm_backward"}
)
NORMS: Final = LAST_NORMS | {"batch_norm_eval"}
LAST_NORM: Final = ".last"
"""Ends the name of a batch norm over images in the channels-last layout: other kernels, for which the number of pixels
of one image means nothing."""


def _position(tensor: Shaped) -> Shaped:
    """Positions that are not contiguous are one for each row, shown for all its columns."""
    kind, shape, is_contiguous = tensor
    return tensor if is_contiguous or kind not in "li" else (kind, shape[:-1] or shape, True)


def _image(shape: list[int]) -> list[int]:
    """The same numbers as an image: to a batch norm, a sequence or a volume is one with other sides."""
    return [shape[0], shape[1], prod(shape[2:]), 1] if len(shape) > 1 else shape


def _bytes(tensor: Shaped) -> float:
    return float(prod(tensor[1]) * DTYPE_BYTES.get(tensor[0], 4))


INDEXED: Final = frozenset(
    {
        "index", "index_select", "gather", "index_add", "index_add_", "index_put", "index_put_", "_index_put_impl_",
        "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_", "scatter", "scatter_",
    }
)  # fmt: skip
"""Operations that read or write rows at given positions. The number of rows limits them as much as their bytes."""
BOXED: Final = {"nms": 4, "_roi_align_backward": 1}
"""Operations of torchvision on boxes, whose time follows from one count: the boxes, or the numbers cut out by them."""
READ: Final = frozenset({"index", "index_select", "gather"})
IN_PLACE: Final = frozenset(
    {"index_add_", "_index_put_impl_", "index_put_", "scatter_", "scatter_add_", "scatter_reduce_"}
)
"""Those that leave all other rows of their first input as they are. Others copy it."""
SORTED: Final = frozenset({"index_put", "index_put_", "_index_put_impl_"})
"""Those that sort the positions first, so that each row is written once."""
PICKS_MIN: Final = 1000


def _picks(inputs: Sequence[Shaped]) -> int:
    """How many positions are given, if they are many."""
    found = max((prod(shape) for kind, shape, _ in inputs if kind in "li"), default=0)
    return found if found >= PICKS_MIN else 0


def _indexed(base: str, dtype: str, inputs: Sequence[Shaped], outputs: Sequence[Shaped]) -> Work:
    """Rows at given positions. The dims: numbers per position, whether a tensor is not contiguous, and positions."""
    positions = [each for each in inputs[1:] if each[0] in "li"]
    picks = max(prod(shape) for _, shape, _ in positions)
    moved = sum(_bytes(each) for each in positions)
    if base in READ:
        values = [*outputs]
        moved += sum(_bytes(each) for each in outputs) + min(_bytes(each) for each in (inputs[0], *outputs))
    else:
        values = [each for each in inputs[1:] if each[0] not in "li"]
        moved += (1 if base in SORTED else 2) * sum(_bytes(each) for each in values)
        if base not in IN_PLACE:
            moved += sum(_bytes(each) for each in (inputs[0], *outputs))
    numbers = max((prod(shape) for _, shape, _ in values), default=picks)
    return Work(f"{base}.rows", "bytes", dtype, 0.0, moved, (max(1.0, numbers / picks), 0.0, float(picks)))


def _recurrent(
    base: str, dtype: str, inputs: Sequence[Shaped], attributes: Sequence[int], moved: float
) -> Work:
    """A recurrent layer of cuDNN. The dims: its steps in time, each of which waits for the last, the arithmetic of one
    step, and that of all inputs."""
    mode, hidden, layers, directions, times = attributes
    steps = times * layers
    rows, width = prod(inputs[0][1][:-1]), inputs[0][1][-1]
    product = 2.0 * rows * GATES.get(mode, 1) * hidden * directions
    step = product * hidden / max(1, times)
    whole = product * (width + (layers - 1) * hidden * directions)
    made = Work(base, RECURRENT, dtype, steps * step + whole, moved, (float(steps), step, whole))
    made.tensors = steps * directions
    made.odd = bool(hidden % ALIGNED)
    return made


RECURRENT: Final = "recurrent"
ALIGNED: Final = 4
GATES: Final = {2: 4, 3: 3}
"""Of LSTM and GRU, by cuDNN's number for them. Others have one."""
HALVES: Final = frozenset("bh")
FLOATS: Final = frozenset("bhf")
POINTWISE: Final = frozenset({"add", "add_", "sub", "mul", "mul_", "div", "div_", "where"})
"""Operations that accept inputs of different types or shapes. They then process single numbers, up to twice as slow."""


def _dtype(tensors: Sequence[Shaped]) -> str:
    largest = max(tensors, key=lambda each: prod(each[1]), default=("f", [], True))
    return {"b": "h", "h": "h", "f": "f", "d": "d"}.get(largest[0], "f")


def _tail(tensors: Sequence[Shaped]) -> tuple[float, ...]:
    """Length of a row (for an image: its pixels), whether a tensor is not contiguous, and the channels of an image."""
    shape = max(tensors, key=lambda each: prod(each[1]))[1]
    image = len(shape) == 4
    row = float(shape[-1] * shape[-2] if image else shape[-1] if shape else 1)
    return row, 0.0 if all(each[2] for each in tensors) else 1.0, float(shape[1]) if image else 1.0


def _matmul(base: str, inputs: Sequence[Shaped], outputs: Sequence[Shaped], moved: float) -> Work:
    if base == "_grouped_mm":
        inputs = inputs[:2]  # the rest are the ends of the groups
    left, right = [each for each in inputs if len(each[1]) >= 1][-2:]
    batch = prod(left[1][:-2]) if len(left[1]) > 2 else 1
    m = left[1][-2] if len(left[1]) >= 2 else 1
    k = left[1][-1]
    n = right[1][-1] if len(right[1]) >= 2 else 1
    dtype = {"b": "h", "h": "h"}.get(left[0], "f")
    made = Work(
        base, "matmul", dtype, 2.0 * batch * m * n * k, moved, (float(m), float(n), float(k), float(batch))
    )
    # Whether rows are not aligned to 16 bytes. Rows in memory: the columns of a transposed matrix.
    step = 8 if dtype == "h" else 4
    made.odd = any(each % step for each in (k if left[2] else m, n if right[2] else k, n))
    return made


def _convolution(
    base: str, inputs: Sequence[Shaped], outputs: Sequence[Shaped], attributes: Sequence[int], moved: float
) -> Work:
    backward = base == "convolution_backward"
    x, weight = (inputs[1], inputs[2]) if backward else (inputs[0], inputs[1])
    y = inputs[0] if backward else outputs[0]
    stride, _, _, transposed, groups, *mask = attributes or [1, 0, 1, 0, 1]
    kernel = prod(weight[1][2:])
    spatial = prod(x[1] if transposed else y[1]) // max(1, (x[1] if transposed else y[1])[1])
    flops = 2.0 * spatial * prod(weight[1])
    channels_in, channels_out = x[1][1], y[1][1]
    if backward:
        flops *= sum(mask[:2]) if mask else 2
    kind = "depthwise" if groups > 1 and groups == channels_in else "grouped" if groups > 1 else "plain"
    shape = "1" if kernel == 1 else "k"
    family = f"conv{'b' if backward else 'f'}:{kind}:{shape}{'s' if stride > 1 else ''}"
    if kind == "depthwise" and len(x[1]) > IMAGE_SIDES:
        family += VOLUME
    elif not x[2] and (kind == "depthwise" or kernel == 1 or not weight[2]):
        family += LAST  # other kernels, and no copies to another layout
    if kind == "plain" and channels_in <= 4:
        family = f"conv{'b' if backward else 'f'}:{_stem(weight[1][-1], stride)}"
    elif kernel == 1 and prod(y[1][2:]) == 1:
        family = f"conv{'b' if backward else 'f'}:point"
    dtype = {"b": "h", "h": "h"}.get(x[0], "f")
    rows = float(spatial)
    made = Work(
        base,
        family,
        dtype,
        flops,
        moved,
        (rows, float(channels_out), channels_in / groups * kernel, float(groups)),
    )
    # The same for the channels of an image: in 16 bits, 54 by 54 pixels are not aligned, 56 by 56 are.
    made.odd = bool(prod(y[1][2:]) % (8 if dtype == "h" else 4))
    return made


def _stem(side: int, stride: int) -> str:
    """The layer that reads images. cuDNN changes their layout only for windows that overlap widely."""
    if side == stride > 1:
        return "patch"
    return "wide" if side > STEM_SIDE_MAX else "stem"


STEM_SIDE_MAX: Final = 4
IMAGE_SIDES: Final = 4
VOLUME: Final = "v"
"""Ends the family of depthwise convolutions over volumes: other kernels, which take several times as long."""
LAST: Final = "n"
"""Ends the family of convolutions whose images and weights are in the channels-last layout."""


def _attention(base: str, inputs: Sequence[Shaped], moved: float, *, causal: bool) -> Work:
    four = [each for each in inputs if len(each[1]) == 4]
    backward = "backward" in base
    start = 1 if backward and len(four) > 3 else 0
    query, key, value = (four[min(start + at, len(four) - 1)] for at in range(3))
    batch, heads, rows, width = query[1]
    widths = width + value[1][3]  # DeepSeek's values are narrower than its keys
    flops = 2.0 * batch * heads * rows * key[1][2] * widths * (2.5 if backward else 1.0)
    if causal:
        flops /= 2  # no token attends to later ones
    dtype = {"b": "h", "h": "h"}.get(query[0], "f")
    kind = "efficient" if "efficient" in base else "cudnn"  # flash attention is priced as cuDNN's
    return Work(
        base,
        f"attention{'b' if backward else 'f'}:{kind}",
        dtype,
        flops,
        moved,
        (float(rows), float(batch * heads), float(width), float(causal)),
    )
