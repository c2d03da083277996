"""CUDA's choices, taken on a machine without CUDA.

A CPU build of PyTorch cannot run a backward pass on fake CUDA tensors, so the step runs on fake CPU ones,
and this mode takes the decisions that differ: which attention kernel, how dropout keeps its mask, what
autocast casts, and that a script's `cuda` is the device there is. Each was checked against the sequence
of operations recorded on an H200 (docs/estimate.md).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
import torch.utils.checkpoint
from torch.overrides import TorchFunctionMode

_LOWER_WORDS = """
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution prelu addmm addmv addr
    matmul __matmul__ __rmatmul__ einsum mm mv linear bilinear addbmm baddbmm bmm chain_matmul multi_dot
    scaled_dot_product_attention lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
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
CUDNN_HEAD_MAX = 128
DEVICES = ("cuda", "cpu")
"""Fake tensors lie on the CPU, so code that asks a tensor for its device speaks of that one."""
REENTERED = frozenset({"multi_head_attention_forward"})
"""Python functions whose inner calls must be seen one by one."""


class CudaChoices(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.autocast_stack: list[tuple[bool, Any]] = []
        self._copies: dict[int, tuple[Any, Any]] = {}
        self.on_copy: Callable[[Any], None] = lambda copy: None
        self.enter_next = False
        """Set while a function of `REENTERED` is called: it must run itself instead of asking us again."""

    @property
    def autocast_dtype(self) -> Any:
        """The 16-bit type autocast is on with, or None."""
        if self.autocast_stack and self.autocast_stack[-1][0]:
            return self.autocast_stack[-1][1]
        return None

    def within(self, function: Any) -> Any:
        """The function under these choices, also when autograd calls it again in the backward pass."""

        def called(*args: Any, **kwargs: Any) -> Any:
            if self in torch.overrides._get_current_function_mode_stack():
                return function(*args, **kwargs)
            with self:
                return function(*args, **kwargs)

        return called

    def forget_copies(self) -> None:
        self._copies.clear()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = _on_cpu(kwargs) if kwargs else {}
        name = getattr(func, "__name__", "")
        if name in ("to", "cuda", "device") and args:
            args, kwargs, func = _moved(name, func, args, kwargs)
        if name in REENTERED:
            self.enter_next = True
            with self:
                return func(*args, **kwargs)
        if self.autocast_dtype is not None:
            if name == "cross_entropy" and not kwargs.get("label_smoothing"):
                return _cross_entropy(*args, **kwargs)
            args, kwargs = self._cast(name, args, kwargs)
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
            return _dropout(*args, **kwargs)
        if name == "interpolate" and kwargs.get("mode", "nearest") == "nearest" and args[0].dim() == 4:
            return _nearest(*args, **kwargs)
        if name == "scaled_dot_product_attention":
            return attention(*args, **kwargs)
        return func(*args, **kwargs)

    def _cast(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        if name in LOWER:
            dtype = self.autocast_dtype
        elif name in FULL:
            dtype = torch.float32
        else:
            return args, kwargs
        # The last argument is cast first, as the compiled wrappers do: it decides the order of birth.
        kwargs = {key: self._one(value, dtype) for key, value in reversed(list(kwargs.items()))}
        args = tuple([self._one(value, dtype) for value in reversed(args)][::-1])
        return args, kwargs

    def _one(self, value: Any, dtype: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([self._one(each, dtype) for each in value])
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.dtype == dtype:
            return value
        if value.dtype == torch.float64:
            return value
        if not (value.dtype == torch.float32 and value.requires_grad and value.is_leaf):
            return value.to(dtype)
        known = self._copies.get(id(value))
        if known is None or known[1].dtype != dtype:
            copy = value.to(dtype)
            self.on_copy(copy)
            known = self._copies[id(value)] = (value, copy)
        return known[1]


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Attention by the kernel CUDA takes on Hopper: cuDNN's in 16 bits, the memory-efficient one in 32."""
    aten = torch.ops.aten
    keep = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value))
    head = query.shape[-1]
    half = query.dtype in (torch.bfloat16, torch.float16)
    mask_needs_gradient = attn_mask is not None and attn_mask.requires_grad and torch.is_grad_enabled()
    if attn_mask is not None and attn_mask.dtype not in (torch.bool, query.dtype):
        attn_mask = attn_mask.to(query.dtype)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(
            attn_mask.logical_not(), float("-inf")
        )
    fusable = query.dim() == 4 and (attn_mask is None or attn_mask.stride(-1) == 1)
    if fusable and half and head % 8 == 0 and head <= CUDNN_HEAD_MAX and not mask_needs_gradient:
        return aten._scaled_dot_product_cudnn_attention(
            query, key, value, attn_mask, keep, dropout_p, is_causal, False, scale=scale
        )[0]
    grouped = enable_gqa and query.shape[-3] != key.shape[-3]
    if fusable and not grouped and head % (8 if half else 4) == 0:
        if attn_mask is not None:
            attn_mask = attn_mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, keep, dropout_p, is_causal, scale=scale
        )[0]
    if dropout_p == 0.0:
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, 0.0, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]
    return _attention_with_dropout(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _attention_with_dropout(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: float, is_causal: bool, scale: float | None
) -> Any:
    """The unfused path written out, since its dropout would otherwise keep a mask as wide as its input."""
    dtype = query.dtype
    if dtype != torch.float32:
        query, key, value = query.float(), key.float(), value.float()
    root = (scale if scale is not None else 1.0) ** 0.5
    weights = torch.matmul(query * root, key.transpose(-2, -1) * root)
    if is_causal:
        mask = torch.zeros(query.shape[-2], key.shape[-2]).triu_(1)
    if mask is not None:
        weights = weights.add(mask)
    weights = torch.ops.aten._safe_softmax(weights, -1)
    weights = torch.native_dropout(weights, dropout_p, True)[0]
    return torch.matmul(weights, value).to(dtype)


def _cross_entropy(input: Any, target: Any, weight: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Under autocast the logarithm stays in 16 bits and only the choice of the label is cast."""
    kwargs.pop("label_smoothing", None)
    logarithm = torch.log_softmax(input, 1 if input.dim() > 1 else 0)
    return torch.nn.functional.nll_loss(logarithm.float(), target, weight, *args, **kwargs)


def _dropout(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, train: Any = None
) -> Any:
    active = training if train is None else train
    if not active or p == 0:
        return input
    return torch.native_dropout(input, p, True)[0]


def _nearest(input: Any, size: Any = None, scale_factor: Any = None, **rest: Any) -> Any:
    """The overload that keeps symbols symbols."""
    if size is None:
        factors = scale_factor if isinstance(scale_factor, (list, tuple)) else (scale_factor, scale_factor)
        size = [int(factor) * side if factor == int(factor) else int(factor * side)
                for factor, side in zip(factors, input.shape[2:], strict=True)]  # fmt: skip
    elif isinstance(size, int):
        size = [size, size]
    return torch.ops.aten.upsample_nearest2d.default(input, list(size))


def _whole(index: Any) -> bool:
    """Whether indexing takes everything: eager PyTorch then slices nothing, and keeps no backward for it."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        isinstance(part, slice) and part.start in (None, 0) and part.stop is None and part.step in (None, 1)
        for part in parts
    )


def _is_cuda(value: Any) -> bool:
    return (isinstance(value, torch.device) and value.type == "cuda") or (
        isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))
    )


def _on_cpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: "cpu" if key == "device" and _is_cuda(value) else value for key, value in kwargs.items()}


def _moved(name: str, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    if name == "cuda" and isinstance(args[0], torch.Tensor):
        return args[:1], {}, lambda tensor: tensor
    if name == "to":
        args = tuple("cpu" if index and _is_cuda(value) else value for index, value in enumerate(args))
    return args, kwargs, func


@contextmanager
def pretending(choices: CudaChoices) -> Iterator[None]:
    """Let scripts believe there is one CUDA device: autocast works on it, and asking about it answers."""
    autocast = torch.amp.autocast_mode.autocast
    real_init, real_enter, real_exit = autocast.__init__, autocast.__enter__, autocast.__exit__

    def init(
        self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
    ) -> None:
        if device_type not in DEVICES:
            return real_init(self, device_type, dtype, enabled, cache_enabled)
        self.device, self.fast_dtype, self._enabled = device_type, dtype or torch.float16, enabled
        self.teraflock_cuda = True
        self._cache_enabled, self.prev_cache_enabled = True, True
        return None

    def enter(self: Any) -> Any:
        if not getattr(self, "teraflock_cuda", False):
            return real_enter(self)
        choices.autocast_stack.append((self._enabled, self.fast_dtype))
        return self

    def leave(self: Any, *error: Any) -> Any:
        if not getattr(self, "teraflock_cuda", False):
            return real_exit(self, *error)
        choices.autocast_stack.pop()
        if not choices.autocast_stack:
            choices.forget_copies()
        return False

    def enabled(device_type: str = "cuda") -> bool:
        return device_type in DEVICES and choices.autocast_dtype is not None

    def dtype_of(device_type: str = "cuda") -> Any:
        return choices.autocast_dtype or (torch.float16 if device_type == "cuda" else torch.bfloat16)

    real_has = torch.nn.functional.has_torch_function

    def has_torch_function(tensors: Any) -> bool:
        if choices.enter_next:
            choices.enter_next = False
            return False
        return bool(real_has(tensors))

    checkpoint = torch.utils.checkpoint
    real_generator, real_function = (
        checkpoint._checkpoint_without_reentrant_generator,
        checkpoint.CheckpointFunction,
    )

    class Reentrant:
        @staticmethod
        def apply(function: Any, *args: Any) -> Any:
            return real_function.apply(choices.within(function), *args)

    def generator(function: Any, *args: Any, **kwargs: Any) -> Any:
        return real_generator(choices.within(function), *args, **kwargs)

    nothing: Callable[..., Any] = lambda *args, **kwargs: None  # noqa: E731
    zero: Callable[..., Any] = lambda *args, **kwargs: 0  # noqa: E731
    patches: list[Any] = [
        mock.patch.object(autocast, "__init__", init),
        mock.patch.object(autocast, "__enter__", enter),
        mock.patch.object(autocast, "__exit__", leave),
        mock.patch.object(checkpoint, "_checkpoint_without_reentrant_generator", generator),
        mock.patch.object(checkpoint, "CheckpointFunction", Reentrant),
        mock.patch.object(torch.nn.functional, "has_torch_function", has_torch_function),
        mock.patch.object(torch, "is_autocast_enabled", enabled),
        mock.patch.object(torch, "get_autocast_dtype", dtype_of),
        mock.patch.object(torch, "get_autocast_gpu_dtype", dtype_of),
        mock.patch.object(torch.cuda, "is_available", lambda: True),
        mock.patch.object(torch.cuda, "device_count", lambda: 1),
        mock.patch.object(torch.cuda, "current_device", lambda: 0),
        mock.patch.object(torch.cuda, "is_bf16_supported", lambda *a, **k: True),
        mock.patch.object(torch.cuda, "get_device_name", lambda *a, **k: "NVIDIA H200"),
        mock.patch.object(torch.cuda, "get_device_capability", lambda *a, **k: (9, 0)),
        *[
            mock.patch.object(torch.cuda, name, nothing)
            for name in (
                "synchronize",
                "empty_cache",
                "set_device",
                "reset_peak_memory_stats",
                "manual_seed",
                "manual_seed_all",
            )
        ],
        *[
            mock.patch.object(torch.cuda, name, zero)
            for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
        ],
        mock.patch.object(torch.nn.Module, "cuda", lambda self, device=None: self),
        mock.patch.object(torch.Tensor, "cuda", lambda self, *a, **k: self),
        mock.patch.object(torch.nn.Module, "_apply", _apply),
        mock.patch.object(torch.nn.Module, "to", _module_to(torch.nn.Module.to)),
    ]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()


def _apply(self: Any, function: Any, recurse: bool = True) -> Any:
    """`Module._apply` as it works on CUDA: in place. On fake tensors PyTorch would swap them, and fail."""
    if recurse:
        for child in self.children():
            child._apply(function)
    with torch.no_grad():
        for parameter in self._parameters.values():
            if parameter is not None:
                new = function(parameter)
                if new is not parameter and new.dtype != parameter.dtype:
                    parameter.data = new
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = function(buffer)
    return self


def _module_to(real: Any) -> Any:
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        args = tuple("cpu" if _is_cuda(each) else each for each in args)
        return real(self, *args, **_on_cpu(kwargs))

    return to
