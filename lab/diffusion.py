"""The U-Net of Stable Diffusion XL: `image` counts latent pixels, 128 for pictures of 1024.

It predicts the noise in latents with 77 embedded tokens of text, the pooled text and the sizes of the picture; neither
text encoders nor the autoencoder are in it.
"""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # its usual name
from torch import nn

from lab.others import HALF, TOKENS, VARIANTS, CrossAttention, ResBlock

WIDTHS, DEPTHS, CONTEXT, LATENT, POOLED = (320, 640, 1280), (0, 2, 10), 2048, 128, 2816


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        heads = width // 64
        self.norm1, self.attn1 = nn.LayerNorm(width), CrossAttention(width, width, heads)
        self.norm2, self.attn2 = nn.LayerNorm(width), CrossAttention(width, CONTEXT, heads)
        self.norm3, self.up = nn.LayerNorm(width), nn.Linear(width, 8 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, h: Any, context: Any) -> Any:
        y = self.norm1(h)
        h = self.attn1(y, y) + h
        h = self.attn2(self.norm2(h), context) + h
        value, gate = self.up(self.norm3(h)).chunk(2, dim=-1)
        return self.down(value * F.gelu(gate)) + h


class Transformer(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.norm, self.into = nn.GroupNorm(32, width, eps=1e-6), nn.Linear(width, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.back = nn.Linear(width, width)

    def forward(self, x: Any, context: Any) -> Any:
        batch, width, side, _ = x.shape
        h = self.into(self.norm(x).permute(0, 2, 3, 1).reshape(batch, side * side, width))
        for block in self.blocks:
            h = block(h, context)
        return self.back(h).reshape(batch, side, side, width).permute(0, 3, 1, 2).contiguous() + x


class UNetXL(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(320, 1280), nn.SiLU(), nn.Linear(1280, 1280))
        self.added = nn.Sequential(nn.Linear(POOLED, 1280), nn.SiLU(), nn.Linear(1280, 1280))
        self.conv_in = nn.Conv2d(4, 320, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        skips, width, last = [320], 320, len(WIDTHS) - 1
        for level, (out, depth) in enumerate(zip(WIDTHS, DEPTHS, strict=True)):
            for _ in range(2):
                self.down.append(nn.ModuleList([ResBlock(width, out), *self._transformer(out, depth)]))
                width = out
                skips.append(width)
            if level < last:
                self.down.append(nn.ModuleList([nn.Conv2d(width, width, 3, 2, 1)]))
                skips.append(width)
        self.mid = nn.ModuleList([ResBlock(1280, 1280), Transformer(1280, DEPTHS[-1]), ResBlock(1280, 1280)])
        for level in reversed(range(len(WIDTHS))):
            out = WIDTHS[level]
            for index in range(3):
                parts = [ResBlock(width + skips.pop(), out), *self._transformer(out, DEPTHS[level])]
                width = out
                if index == 2 and level:
                    parts.append(nn.Conv2d(out, out, 3, padding=1))
                self.up.append(nn.ModuleList(parts))
        self.norm, self.conv_out = nn.GroupNorm(32, 320), nn.Conv2d(320, 4, 3, padding=1)

    def _transformer(self, width: int, depth: int) -> list[nn.Module]:
        return [Transformer(width, depth)] if depth else []

    def forward(self, x: Any, steps: Any, context: Any, added: Any) -> Any:
        time = self.time(steps) + self.added(added)
        h = self.conv_in(x)
        kept = [h]
        for parts in self.down:
            h = self._through(parts, h, time, context)
            kept.append(h)
        h = self._through(self.mid, h, time, context)
        for parts in self.up:
            h = self._through(parts, torch.cat([h, kept.pop()], 1), time, context)
        return self.conv_out(F.silu(self.norm(h)))

    def _through(self, parts: Any, h: Any, time: Any, context: Any) -> Any:
        for part in parts:
            if isinstance(part, ResBlock):
                h = part(h, time)
            elif isinstance(part, Transformer):
                h = part(h, context)
            elif part.stride[0] == 2:
                h = part(h)
            else:
                h = part(F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return h


def build_unet_xl(variant: Any, sizes: dict[str, Any]) -> Any:
    half = HALF.get(variant.precision, torch.float32)
    net = UNetXL().to(half)
    batch = sizes["batch"]
    x, noise = (torch.randn(batch, 4, LATENT, LATENT, dtype=half) for _ in range(2))
    steps, context = torch.randn(batch, 320, dtype=half), torch.randn(batch, TOKENS, CONTEXT, dtype=half)
    added = torch.randn(batch, POOLED, dtype=half)
    inputs = [x, steps, context, added]
    if variant.task == "infer":
        return net, lambda: net(*inputs), inputs
    return net, lambda: F.mse_loss(net(*inputs), noise), [*inputs, noise]


MODELS: dict[str, tuple[Any, dict[str, int], tuple[str, ...]]] = {
    "unet-diffusion-sdxl": (build_unet_xl, {"batch": 6}, VARIANTS)
}
