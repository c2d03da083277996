"""Temporary memory that kernels allocate while they run.

cuDNN copies input and output to another layout for its tensor-core kernels. The backward pass of attention accumulates
in float32. A few other kernels sort or widen. The shares were measured per operation on an H200 (`lab/fit.py` writes
them). An operation without a share is assumed to need no workspace.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from teraflock.estimate.operation import Work
from teraflock.workload.trace import DTYPE_BYTES, TracedOperation

BLOCK: Final = 64
BLOCK_NUMBERS: Final = BLOCK * BLOCK + 4
"""A block of gradients in the memory-efficient attention, with its lock and counter."""
PADDING: Final = 32
"""Rows of that attention are padded to a multiple of this."""
IMAGE_SIDES_MIN: Final = 2
"""Sequences and volumes count like images: the same shares were measured for them."""
CUBLAS_WORKSPACE_BYTES: Final = {"Hopper": 32 << 20, "Blackwell": 32 << 20}


def workspace_bytes(
    operation: TracedOperation, work: Work, sizes: Sequence[int], shares: Mapping[str, float]
) -> int:
    """Bytes that an operation needs while it runs, in addition to its outputs."""
    if work.family.startswith("conv"):
        share = shares.get(f"{work.family}:{work.dtype}", 0.0)
        if not share:
            return 0
        tensors = (
            operation.inputs[:3]
            if operation.name == "convolution_backward"
            else [operation.inputs[0], *operation.outputs]
        )
        images = sum(
            _bytes(each.dtype, each.shape, sizes) for each in tensors if len(each.shape) > IMAGE_SIDES_MIN
        )
        if operation.name == "convolution_backward":
            images -= _bytes(operation.inputs[2].dtype, operation.inputs[2].shape, sizes)
        weight = operation.inputs[2 if operation.name == "convolution_backward" else 1]
        return int(share * (images + 2 * _bytes(weight.dtype, weight.shape, sizes)))
    return special_workspace_bytes(operation, sizes)


PLANE: Final = 4
"""Sides of a batch of images. One of sequences has three; volumes are not transformed."""
TRIED_SIDE_MAX: Final = 256
TRIED_CHANNELS_MIN: Final = 32
COMPLEX_BYTES: Final = 8
"""Images and weights are transformed as squares whose side is a power of two. So measured for 9 of 10 convolutions
forward, to 1 % without copies to another layout, and for one gradient (`fit_trials` in lab/measured/README.md)."""


def trial_bytes(operation: TracedOperation, sizes: Sequence[int]) -> int:
    """Bytes that `cudnn.benchmark` needs to try a convolution in float32 by Fourier transforms: forward, where windows
    are wider than one number, and for the gradient of the weight of the others. 0 where it does not try that."""
    is_back = operation.name == "convolution_backward"
    if not operation.name.startswith("convolution") or operation.inputs[0].dtype != "f":
        return 0
    image, weight = ([sizes[at] for at in each.shape] for each in operation.inputs[is_back : 2 + is_back])
    stride, _, dilation, is_transposed, groups = operation.attributes[:5]
    window = max(weight[2:])
    is_plain = (stride, dilation, is_transposed, groups) == (1, 1, 0, 1) and len(image) <= PLANE
    side = 1 << (max(image[2:]) + window - 2).bit_length()
    if not is_plain or side > TRIED_SIDE_MAX or image[1] < TRIED_CHANNELS_MIN or is_back != (window == 1):
        return 0
    planes = prod(weight[:2]) + (0 if is_back else prod(image[:2]))
    return 2 * planes * side * (side // 2 + 1) * COMPLEX_BYTES


def special_workspace_bytes(operation: TracedOperation, sizes: Sequence[int]) -> int:
    """The workspace when memory is short: PyTorch then runs convolutions without one."""
    special = _SPECIAL.get(operation.name.split(".")[0])
    return special(operation, sizes) if special else 0


def has_special_workspace(operation: TracedOperation) -> bool:
    return operation.name.split(".")[0] in _SPECIAL


def _bytes(dtype: str, shape: Sequence[int], sizes: Sequence[int]) -> int:
    return prod(sizes[i] for i in shape) * DTYPE_BYTES.get(dtype, 4)


def _largest_input(operation: TracedOperation, sizes: Sequence[int]) -> int:
    return max(_bytes(each.dtype, each.shape, sizes) for each in operation.inputs)


def _attention_backward(operation: TracedOperation, sizes: Sequence[int]) -> int:
    query = next(each for each in operation.inputs if len(each.shape) == 4)
    elements = prod(sizes[i] for i in query.shape)
    return 4 * elements + 4 * elements // max(1, sizes[query.shape[-1]])


def _efficient_attention_backward(operation: TracedOperation, sizes: Sequence[int]) -> int:
    """Gradient times output, one number per row, and gradients of queries in blocks. The product is freed before the
    blocks are allocated if the rows need no padding. So measured for 40 shapes on an H200."""
    query = next(each for each in operation.inputs if len(each.shape) == 4)
    batch, heads, length, width = (sizes[i] for i in query.shape)
    product = 4 * batch * heads * length * width
    blocks = 4 * BLOCK_NUMBERS * batch * heads * -(-length // BLOCK) * -(-width // BLOCK)
    rows = 4 * batch * heads * length
    return rows + (product + blocks if length % PADDING else max(product, blocks))


def _softmax_backward(operation: TracedOperation, sizes: Sequence[int]) -> int:
    """Gradient times output, plus a copy of the gradient if it is not contiguous."""
    return _largest_input(operation, sizes) + _uncontiguous_input(operation, sizes)


def _uncontiguous_input(operation: TracedOperation, sizes: Sequence[int]) -> int:
    return max(
        (_bytes(each.dtype, each.shape, sizes) for each in operation.inputs if not each.contiguous), default=0
    )


RECURRENT_NUMBERS: Final = 7.5
"""Temporary numbers of a recurrent layer, forward or backward, for each number of its output. Measured on an H200 for
one and two layers in one and two directions: 7 to 8.7."""


def _recurrent(operation: TracedOperation, sizes: Sequence[int]) -> int:
    _, hidden, _, directions, _ = operation.attributes
    first = operation.inputs[0]
    rows = prod(sizes[at] for at in first.shape[:-1])
    return int(RECURRENT_NUMBERS * rows * hidden * directions * DTYPE_BYTES[first.dtype])


def _roll(operation: TracedOperation, sizes: Sequence[int]) -> int:
    return _largest_input(operation, sizes)


_SPECIAL: Final = {
    "_scaled_dot_product_efficient_attention_backward": _efficient_attention_backward,
    "_scaled_dot_product_cudnn_attention_backward": _attention_backward,
    "_scaled_dot_product_flash_attention_backward": _attention_backward,
    "_softmax_backward_data": _softmax_backward,
    "native_layer_norm": _uncontiguous_input,
    "native_layer_norm_backward": _uncontiguous_input,
    "roll": _roll,
    "_cudnn_rnn": _recurrent,
    "_cudnn_rnn_backward": _recurrent,
}
