"""Kernels that differ between CUDA and CPU, and what they keep for the backward pass.

Each was compared with the sequence of operations recorded on an H200 (lab/diary.md).
"""

from typing import Any

import torch

CUDNN_HEAD_MAX = 128
FLASH_HEAD_MAX = 256
PREFERS_CUDNN = "attn_bias" in {
    each.name for each in torch.ops.aten._scaled_dot_product_cudnn_attention.default._schema.arguments
}
"""PyTorch 2.4 has cuDNN's attention without masks, and does not choose it by itself."""


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
    """Attention with the kernel that CUDA uses on Hopper: cuDNN's for 16 bits, the memory-efficient one for 32."""
    aten = torch.ops.aten
    keep = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value))
    head = query.shape[-1]
    same_heads = value.shape[-1] == head
    half = query.dtype in (torch.bfloat16, torch.float16)
    mask_needs_gradient = attn_mask is not None and attn_mask.requires_grad and torch.is_grad_enabled()
    if attn_mask is not None and attn_mask.dtype not in (torch.bool, query.dtype):
        attn_mask = attn_mask.to(query.dtype)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(
            attn_mask.logical_not(), float("-inf")
        )
    given = [query, key, value] if attn_mask is None else [query, key, value, attn_mask]
    fusable = query.dim() == 4 and all(each.stride(-1) == 1 for each in given)  # not if cut from channels
    if half and mask_needs_gradient:  # a learned bias, such as T5's
        fusable = False
    if fusable and half and head % 8 == 0 and head <= CUDNN_HEAD_MAX and PREFERS_CUDNN:
        return aten._scaled_dot_product_cudnn_attention(
            query, key, value, attn_mask, keep, dropout_p, is_causal, False, scale=scale
        )[0]
    if fusable and half and head % 8 == 0 and head <= FLASH_HEAD_MAX and same_heads and attn_mask is None:
        # Heads too wide for cuDNN, such as Gemma's, or PyTorch 2.4: flash attention, which also supports shared keys.
        # DeepSeek's values are narrower than its keys, which only the memory-efficient kernel takes.
        return aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, False, scale=scale
        )[0]
    grouped = enable_gqa and query.shape[-3] != key.shape[-3]
    if fusable and not grouped and head % (8 if half else 4) == 0:
        if attn_mask is not None:
            attn_mask = attn_mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, keep, dropout_p, is_causal, scale=scale
        )[0]
    if dropout_p == 0.0:
        grouping = {"enable_gqa": True} if enable_gqa else {}  # PyTorch 2.4 does not know the word
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, 0.0, is_causal, None, scale=scale, **grouping
        )[0]
    if grouped:
        key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    return _with_dropout(query, key, value, attn_mask, dropout_p, is_causal, scale)


def takes_fast_attention(
    module: Any, query: Any, key: Any, value: Any, need_weights: bool, mask: Any
) -> bool:
    """Whether `nn.MultiheadAttention` may run as `fast_attention`. PyTorch has more conditions, such as no gradient."""
    return query is key and key is value and not need_weights and mask is None and module.head_dim % 8 == 0


def fast_attention(
    query: Any, heads: int, weight: Any, bias: Any, out_weight: Any, out_bias: Any
) -> tuple[Any, None]:
    """`_native_multi_head_attention` in steps: two products and a fused kernel, without copies in between."""
    batch, length, width = query.shape
    packed = torch.nn.functional.linear(query, weight, bias)
    parts = (each.view(batch, length, heads, width // heads).transpose(1, 2) for each in packed.chunk(3, -1))
    seen = attention(*parts).transpose(1, 2).reshape(batch, length, width)
    return torch.nn.functional.linear(seen, out_weight, out_bias), None


def _with_dropout(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: float, is_causal: bool, scale: float | None
) -> Any:
    """The unfused path in steps. Otherwise its dropout would keep a mask as large as its input."""
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


def cross_entropy(input: Any, target: Any, weight: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Under autocast the logarithm stays in 16 bits, and only the selected value is cast."""
    kwargs.pop("label_smoothing", None)
    logarithm = torch.log_softmax(input, 1 if input.dim() > 1 else 0)
    return torch.nn.functional.nll_loss(logarithm.float(), target, weight, *args, **kwargs)


def dropout(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, train: Any = None
) -> Any:
    active = training if train is None else train
    if not active or p == 0:
        return input
    return torch.native_dropout(input, p, True)[0]


def nearest(input: Any, size: Any = None, scale_factor: Any = None, **rest: Any) -> Any:
    """The overload that preserves symbols."""
    if size is None:
        factors = scale_factor if isinstance(scale_factor, (list, tuple)) else (scale_factor, scale_factor)
        size = [int(factor) * side if factor == int(factor) else int(factor * side)
                for factor, side in zip(factors, input.shape[2:], strict=True)]  # fmt: skip
    elif isinstance(size, int):
        size = [size, size]
    return torch.ops.aten.upsample_nearest2d.default(input, list(size))


def has_fused_rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> bool:
    """Newer versions of PyTorch have one kernel for it, if the weight has the type of the input."""
    return hasattr(torch.ops.aten, "_fused_rms_norm") and (weight is None or weight.dtype == input.dtype)


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """Recorded as a layer norm without bias, which reads, writes and keeps the same: on the CPU it has no kernel."""
    return torch.ops.aten.native_layer_norm(input, list(normalized_shape), weight, None, eps or 1e-6)[0]


def with_length_tensors(args: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
    """Arguments of `ctc_loss` with lengths as tensors: PyTorch writes lists into a tensor, which has no values here."""

    def changed(value: Any) -> Any:
        return torch.tensor(value) if isinstance(value, (list, tuple)) else value

    return tuple(changed(each) for each in args), {key: changed(each) for key, each in kwargs.items()}


def packed(input: Any, rows: tuple[Any, Any]) -> tuple[Any, Any]:
    """`_pack_padded_sequence` with known lengths: the rows of each time, longest sequence first."""
    sizes, places = rows
    return input.flatten(0, 1).index_select(0, places), sizes


def padded(data: Any, shape: tuple[int, int], places: Any, value: float) -> Any:
    """`_pad_packed_sequence`: the reverse."""
    empty = data.new_full([shape[0] * shape[1], *data.shape[1:]], value)
    return empty.index_copy(0, places, data).unflatten(0, shape)


def rows_of(lengths: Any, shape: Any, *, batch_first: bool) -> tuple[Any, Any]:
    """How many sequences there are at each time, and where their rows are in a padded tensor of this shape."""
    is_there = lengths > torch.arange(int(lengths.max()))[:, None]
    at, who = is_there.nonzero(as_tuple=True)
    return is_there.sum(1), who * shape[1] + at if batch_first else at * shape[1] + who
