"""What autocast casts on CUDA: which operations, to which type, in which order, and the copies of weights that it
keeps."""

from collections.abc import Callable
from typing import Any

import torch

from teraflock.workload.tracing.side import Sides, tensors_in

_LOWER_WORDS = """
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution prelu addmm addmv addr
    matmul __matmul__ __rmatmul__ einsum mm mv linear bilinear addbmm baddbmm bmm chain_matmul multi_dot
    scaled_dot_product_attention lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
    lstm gru rnn_tanh rnn_relu
"""
LOWER = frozenset(_LOWER_WORDS.split())
"""Autocast runs these in its 16-bit type (AT_FORALL_LOWER_PRECISION_FP)."""
_FULL_WORDS = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow __pow__ __rpow__ softplus
    layer_norm native_layer_norm group_norm cosine_similarity nll_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss
    margin_ranking_loss soft_margin_loss triplet_margin_loss multi_margin_loss hinge_embedding_loss
    binary_cross_entropy_with_logits cosine_embedding_loss dist pdist cdist renorm logsumexp interpolate
    softmax log_softmax cumprod cumsum prod sum norm rms_norm
"""
FULL = frozenset(_FULL_WORDS.split())
"""Autocast runs these in float32 (AT_FORALL_FP32 and the lists with an output type)."""
PROMOTED = frozenset(
    [
        "addcdiv",
        "addcmul",
        "atan2",
        "cross",
        "dot",
        "vdot",
        "grid_sample",
        "index_put",
        "scatter_add",
        "tensordot",
    ]
)
"""Autocast runs these in the widest type of their arguments."""


class Autocast:
    def __init__(self, sides: Sides | None = None) -> None:
        self._sides = sides
        self._stack: list[tuple[bool, Any]] = []
        self._copies: dict[int, tuple[Any, Any]] = {}
        self.on_copy: Callable[[Any], None] = lambda copy: None

    @property
    def dtype(self) -> Any:
        """The 16-bit type that autocast uses, or None if it is off."""
        return self._stack[-1][1] if self._stack and self._stack[-1][0] else None

    def enter(self, enabled: bool, dtype: Any) -> None:
        self._stack.append((enabled, dtype))

    def leave(self) -> None:
        self._stack.pop()
        if not self._stack:
            self._copies.clear()

    def cast(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        if name in LOWER:
            dtype = self.dtype
        elif name in FULL:
            dtype = torch.float32
        elif name in PROMOTED:
            dtype = self._widest((args, kwargs))
        else:
            return args, kwargs
        # The last argument is cast first, as in the compiled wrappers: this decides the order of allocation.
        kwargs = {key: self._one(value, dtype) for key, value in reversed(list(kwargs.items()))}
        args = tuple([self._one(value, dtype) for value in reversed(args)][::-1])
        return args, kwargs

    def _widest(self, value: Any) -> Any:
        is_full = any(each.dtype == torch.float32 for each in tensors_in(value))
        return torch.float32 if is_full else self.dtype

    def _one(self, value: Any, dtype: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([self._one(each, dtype) for each in value])
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.dtype == dtype:
            return value
        if value.dtype == torch.float64 or (self._sides is not None and not self._sides.is_gpu(value)):
            return value
        if not (value.dtype == torch.float32 and value.requires_grad and value.is_leaf):
            return value.to(dtype)
        known = self._copies.get(id(value))
        if known is None or known[1].dtype != dtype:
            with (
                torch.enable_grad()
            ):  # a cached copy counts as trained, even under `no_grad`: products are then folded
                copy = value.to(dtype)
            self.on_copy(copy)
            known = self._copies[id(value)] = (value, copy)
        return known[1]
