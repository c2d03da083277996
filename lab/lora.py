"""LoRA as the zoo means it: frozen weights, and two thin trained matrices beside some of the linear layers.

`quantize` puts weights of 4 bits in place of linear layers, which allocate as those of bitsandbytes do: NF4 with double
quantization. They are not computed with: only sizes and operations matter here.
"""

from typing import Any

import torch

QUERY_VALUE = ("q_proj", "v_proj", "qkv_proj", "query", "value", "q_lin", "v_lin", "q", "v", "c_attn")
HEADS = ("lm_head", "cls", "score", "gate")
"""Not among the linear layers that are quantized or get LoRA: heads, and the routers of experts."""
BLOCK, BLOCKS = 64, 256
"""Of NF4: numbers with one scale, and scales with one scale of their own."""


class Lora(torch.nn.Module):
    def __init__(self, base: Any, rank: Any) -> None:
        super().__init__()
        self.base = base
        quantized = isinstance(base, Quantized)
        weight = base.weight
        like = {"dtype": base.dtype if quantized else weight.dtype, "device": weight.device}
        wide, out = (
            (base.in_features, base.out_features) if hasattr(base, "in_features") else (base.nx, base.nf)
        )
        self.clones = quantized  # as peft does there
        # Left as they come: drawing first values takes the root of the rank, and would fix that symbol.
        self.a = torch.nn.Parameter(torch.empty(rank, wide, **like))
        self.b = torch.nn.Parameter(torch.empty(out, rank, **like))

    def forward(self, x: Any) -> Any:
        linear = torch.nn.functional.linear
        out = self.base(x)
        if self.clones:
            out = out.clone()
        return out + linear(linear(x, self.a), self.b)


def add_lora(net: Any, rank: Any, targets: str = "query-value") -> None:
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    for module in list(net.modules()):
        for name, child in list(module.named_children()):
            linear = isinstance(child, torch.nn.Linear | Quantized) or type(child).__name__ == "Conv1D"
            chosen = {
                "query-value": name in QUERY_VALUE,
                "all": name not in HEADS and name != "base",
            }[targets]
            if linear and chosen:
                setattr(module, name, Lora(child, rank))


def quantize(net: Any, dtype: Any) -> None:
    for module in list(net.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear) and name not in HEADS:
                setattr(module, name, Quantized(child, dtype))


class Quantized(torch.nn.Module):
    def __init__(self, like: Any, dtype: Any) -> None:
        super().__init__()
        self.in_features, self.out_features, self.dtype = like.in_features, like.out_features, dtype
        count = like.in_features * like.out_features
        self.weight = torch.nn.Parameter(torch.empty(count // 2, 1, dtype=torch.uint8), requires_grad=False)
        self.register_buffer("scales", torch.empty(count // BLOCK, dtype=torch.uint8))
        self.register_buffer("scales_of_scales", torch.empty(-(-count // BLOCK // BLOCKS)))
        self.bias = like.bias

    def forward(self, x: Any) -> Any:
        dtype = x.dtype
        out = _Product.apply(x.to(torch.bfloat16), self.weight, self.scales, self.out_features)
        if self.bias is not None:
            out = out + self.bias.to(out.dtype)
        return out.to(dtype)


class _Product(torch.autograd.Function):
    """The weights are unpacked for each product and again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Any, packed: Any, scales: Any, out: int) -> Any:
        ctx.save_for_backward(packed, scales)
        ctx.sizes = out, x.shape[-1], x.dtype
        return torch.nn.functional.linear(x, _unpacked(packed, scales, *ctx.sizes))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        packed, scales = ctx.saved_tensors
        weight = _unpacked(packed, scales, *ctx.sizes)
        return torch.matmul(gradient.to(weight.dtype), weight), None, None, None


def _unpacked(packed: Any, scales: Any, out: int, wide: int, dtype: Any) -> Any:
    return torch.ops.teraflock.dequantize(packed, scales.to(torch.float32), out, wide, dtype)


@torch.library.custom_op("teraflock::dequantize", mutates_args=())  # type: ignore[untyped-decorator]
def _dequantize(
    packed: torch.Tensor, scales: torch.Tensor, out: int, wide: int, dtype: torch.dtype
) -> torch.Tensor:
    raise NotImplementedError


@_dequantize.register_fake  # type: ignore[untyped-decorator]
def _(packed: torch.Tensor, scales: torch.Tensor, out: int, wide: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(out, wide, dtype=dtype)
