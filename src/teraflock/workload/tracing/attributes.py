"""What a trace keeps of an operation beside its tensors."""

from typing import Any

from teraflock.workload.tracing import recurrent

CONVOLUTIONS = {"convolution": 3, "convolution_backward": 4}
"""The position of the stride among the arguments."""
CAUSAL = {
    "_scaled_dot_product_cudnn_attention": 6,
    "_scaled_dot_product_efficient_attention": 6,
    "_scaled_dot_product_flash_attention": 4,
    "_scaled_dot_product_cudnn_attention_backward": 14,
    "_scaled_dot_product_efficient_attention_backward": 11,
    "_scaled_dot_product_flash_attention_backward": 11,
}
"""The position of the `is_causal` argument."""


def name_of(func: Any, name: str) -> str:
    overload = func._overloadname
    return f"{name}.{overload}" if overload in ("dim_IntList", "Scalar") else name


def attributes_of(name: str, args: Any) -> list[int]:
    if name in CAUSAL:
        return [1] if any(args[CAUSAL[name] : CAUSAL[name] + 1]) else []
    if name.startswith("_cudnn_rnn"):
        return recurrent.attributes(args)
    if name not in CONVOLUTIONS:
        return []
    at = CONVOLUTIONS[name]
    stride, padding, dilation, transposed, _, groups = args[at : at + 6]
    mask = [int(each) for each in args[at + 6]] if name == "convolution_backward" else []
    return [int(stride[0]), int(padding[0]), int(dilation[0]), int(transposed), int(groups), *mask]
