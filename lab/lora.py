"""LoRA as the zoo means it: frozen weights, and two thin trained matrices beside some of the linear layers.

`quantize` replaces linear layers by layers that allocate as those of bitsandbytes do: NF4 with double quantization for
4 bits, LLM.int8 for 8 bits. They compute nothing: only sizes and operations matter here.
"""

from typing import Any

import torch

QUERY_VALUE = (
    "q_proj", "v_proj", "qkv_proj", "query", "value", "q_lin", "v_lin", "q", "v", "c_attn", "query_key_value",
    "q_b_proj", "kv_b_proj",
)  # fmt: skip
HEADS = ("lm_head", "cls", "score", "gate")
"""Not among the linear layers that are quantized or get LoRA: heads, and the routers of experts."""
BLOCK, BLOCKS = 64, 256
"""Of NF4: numbers with one scale, and scales with one scale of their own."""


class Lora(torch.nn.Module):
    def __init__(self, base: Any, rank: Any, dtype: Any = None) -> None:
        """`dtype` is the type of the adapter's matrices. Default: that of the model."""
        super().__init__()
        self.base = base
        quantized = isinstance(base, Quantized | Quantized8)
        weight = base.weight
        own = base.dtype if quantized else weight.dtype
        self.casts = dtype is not None and dtype != own
        like = {"dtype": dtype or own, "device": weight.device}
        wide, out = features(base)
        self.clones = isinstance(base, Quantized)  # as peft does there
        # Left as they come: drawing first values takes the root of the rank, and would fix that symbol.
        self.a = torch.nn.Parameter(torch.empty(rank, wide, **like))
        self.b = torch.nn.Parameter(torch.empty(out, rank, **like))

    def forward(self, x: Any) -> Any:
        linear = torch.nn.functional.linear
        out = self.base(x)
        if self.clones:
            out = out.clone()
        if not self.casts:
            return out + linear(linear(x, self.a), self.b)
        side = linear(linear(x.to(self.a.dtype), self.a), self.b) * SCALING
        return out + side.to(out.dtype)


SCALING = 2.0


def features(linear: Any) -> tuple[int, int]:
    """GPT-2's `Conv1D` is a linear layer with other names."""
    if hasattr(linear, "in_features"):
        return linear.in_features, linear.out_features
    return linear.nx, linear.nf


def is_linear(module: Any) -> bool:
    return isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D"


def add_lora(net: Any, rank: Any, targets: str = "query-value", dtype: Any = None) -> None:
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    for module in list(net.modules()):
        for name, child in list(module.named_children()):
            linear = is_linear(child) or isinstance(child, Quantized | Quantized8)
            chosen = {
                "query-value": name in QUERY_VALUE,
                "all": name not in HEADS and name != "base",
            }[targets]
            if linear and chosen:
                setattr(module, name, Lora(child, rank, dtype))


def quantize(net: Any, dtype: Any, bits: int = 4) -> None:
    kind = Quantized if bits == 4 else Quantized8
    for module in list(net.modules()):
        for name, child in list(module.named_children()):
            if is_linear(child) and name not in HEADS:
                setattr(module, name, kind(child, dtype))


class Quantized(torch.nn.Module):
    def __init__(self, like: Any, dtype: Any) -> None:
        super().__init__()
        self.in_features, self.out_features = features(like)
        self.dtype = dtype
        count = self.in_features * self.out_features
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


class Quantized8(torch.nn.Module):
    """LLM.int8: one byte per weight and one scale per row."""

    def __init__(self, like: Any, dtype: Any) -> None:
        super().__init__()
        self.in_features, self.out_features = features(like)
        self.dtype = dtype
        shape = self.out_features, self.in_features
        self.weight = torch.nn.Parameter(torch.empty(*shape, dtype=torch.int8), requires_grad=False)
        self.register_buffer("scales", torch.empty(self.out_features))
        self.bias = like.bias

    def forward(self, x: Any) -> Any:
        return _Product8.apply(x, self.weight, self.scales, self.bias)


class _Product8(torch.autograd.Function):
    """Inputs become float16, then int8 with one scale per row. The product is int32. The backward pass unpacks the
    weights. The input is kept though nothing reads it."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, scales: Any, bias: Any) -> Any:
        ctx.save_for_backward(x, weight, scales)
        rows = x.reshape(-1, x.shape[-1]).to(torch.float16)
        quantized, row_scales = torch.ops.teraflock.to_int8(rows)
        out = torch.ops.teraflock.int8_product(quantized, weight)
        out = torch.ops.teraflock.from_int32(out, row_scales, scales, x.dtype)
        out = out.reshape(*x.shape[:-1], weight.shape[0])
        return out if bias is None else out + bias.to(out.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, weight, scales = ctx.saved_tensors
        unpacked = weight.to(x.dtype).mul_(scales.unsqueeze(1).mul(1 / 127))
        return torch.matmul(gradient.to(x.dtype), unpacked), None, None, None


@torch.library.custom_op("teraflock::to_int8", mutates_args=())  # type: ignore[untyped-decorator]
def _to_int8(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    raise NotImplementedError


@_to_int8.register_fake  # type: ignore[untyped-decorator]
def _(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(rows, dtype=torch.int8), torch.empty(rows.shape[0])


@torch.library.custom_op("teraflock::int8_product", mutates_args=())  # type: ignore[untyped-decorator]
def _int8_product(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError


@_int8_product.register_fake  # type: ignore[untyped-decorator]
def _(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.empty(rows.shape[0], weight.shape[0], dtype=torch.int32)


@torch.library.custom_op("teraflock::from_int32", mutates_args=())  # type: ignore[untyped-decorator]
def _from_int32(
    out: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    raise NotImplementedError


@_from_int32.register_fake  # type: ignore[untyped-decorator]
def _(out: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_like(out, dtype=dtype)
