"""Replacements for operations whose fake form turns symbolic sizes into numbers, or is the CPU form, which supports
fewer types."""

from collections.abc import Callable
from typing import Any

import torch

from teraflock.workload.tracing import recurrent


def _padded(tensor: Any, pad: Any, *rest: Any) -> Any:
    shape = list(tensor.shape)
    for place in range(len(pad) // 2):
        shape[-1 - place] = shape[-1 - place] + pad[2 * place] + pad[2 * place + 1]
    return _laid_out(tensor.new_empty(shape), tensor)


def _laid_out(made: Any, like: Any) -> Any:
    """In the channels-last layout if `like` is."""
    is_last = like.dim() == 4 and not like.is_contiguous()
    if is_last and like.is_contiguous(memory_format=torch.channels_last):
        return made.contiguous(memory_format=torch.channels_last)
    return made


def _upsampled(tensor: Any, size: Any, *rest: Any) -> Any:
    return _laid_out(tensor.new_empty([tensor.shape[0], tensor.shape[1], *size]), tensor)


def _upsampled_back(gradient: Any, size: Any, input_size: Any, *rest: Any) -> Any:
    return _laid_out(gradient.new_empty(list(input_size)), gradient)


def _histogram(tensor: Any, bins: int = 100, *rest: Any) -> Any:
    return tensor.new_empty([bins])


def grouped(left: Any, right: Any, offs: Any = None, *rest: Any) -> Any:
    """Products of experts: rows in groups, or sums of the groups in the backward pass."""
    if left.dim() == 2 and right.dim() == 2:
        return left.new_empty([offs.shape[0], left.shape[0], right.shape[1]])
    if left.dim() == right.dim() == 3:
        return left.new_empty([left.shape[0], left.shape[1], right.shape[2]])
    return left.new_empty([left.shape[-2], right.shape[-1]])


SHAPED: dict[str, Callable[..., Any]] = {
    "aten::constant_pad_nd": _padded,
    "aten::upsample_nearest2d": _upsampled,
    "aten::upsample_nearest2d_backward": _upsampled_back,
    "aten::histc": _histogram,
    "aten::_grouped_mm": grouped,
    **recurrent.SHAPES,
}
