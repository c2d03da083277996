"""The zoo's generators: DCGAN, BigGAN at 128 pixels, and the U-Net of Stable Diffusion 1.5.

A step of a GAN trains the discriminator on one real and one generated batch and then the generator once.
A step of the U-Net predicts the noise in latents (`image` counts latent pixels: 64 for pictures of 512),
with 77 embedded tokens of text; neither the text encoder nor the autoencoder is in it.
"""

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # its usual name
from torch import nn

HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Pair(nn.Module):
    def __init__(self, generator: nn.Module, discriminator: nn.Module) -> None:
        super().__init__()
        self.generator, self.discriminator = generator, discriminator


# DCGAN, as in PyTorch's tutorial.


def dcgan_pair() -> Pair:
    def up(cin: int, cout: int, stride: int, padding: int) -> list[nn.Module]:
        return [
            nn.ConvTranspose2d(cin, cout, 4, stride, padding, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(True),
        ]

    def down(cin: int, cout: int) -> list[nn.Module]:
        return [
            nn.Conv2d(cin, cout, 4, 2, 1, bias=False),
            nn.BatchNorm2d(cout),
            nn.LeakyReLU(0.2, inplace=True),
        ]

    generator = nn.Sequential(
        *up(100, 512, 1, 0), *up(512, 256, 2, 1), *up(256, 128, 2, 1), *up(128, 64, 2, 1),
        nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    discriminator = nn.Sequential(
        nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True), *down(64, 128), *down(128, 256),
        *down(256, 512), nn.Conv2d(512, 1, 4, 1, 0, bias=False),
    )  # fmt: skip
    return Pair(generator, discriminator)


def build_dcgan(variant: Any, sizes: dict[str, Any]) -> Any:
    half = HALF.get(variant.precision, torch.float32)
    pair = dcgan_pair().to(half)
    batch = sizes["batch"]
    real = torch.randn(batch, 3, 64, 64, dtype=half)
    if variant.task == "infer":
        noise = torch.randn(batch, 100, 1, 1, dtype=half)
        return pair.generator, lambda: pair.generator(noise), [noise]

    def score(x: Any, target: float) -> Any:
        out = pair.discriminator(x).view(-1)
        return F.binary_cross_entropy_with_logits(out, torch.full_like(out, target))

    def step() -> Any:
        score(real, 1.0).backward()
        noise = torch.randn(batch, 100, 1, 1, dtype=half)
        fake = pair.generator(noise)
        score(fake.detach(), 0.0).backward()
        return score(fake, 1.0)

    return pair, step, [real]


# BigGAN at 128 pixels.


class ConditionalNorm(nn.Module):
    def __init__(self, channels: int, condition: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, affine=False)
        self.gain, self.bias = (
            nn.Linear(condition, channels, bias=False),
            nn.Linear(condition, channels, bias=False),
        )

    def forward(self, x: Any, y: Any) -> Any:
        gain = (1 + self.gain(y)).view(y.size(0), -1, 1, 1)
        bias = self.bias(y).view(y.size(0), -1, 1, 1)
        return self.norm(x) * gain + bias


class SelfAttention(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.theta = nn.Conv2d(channels, channels // 8, 1, bias=False)
        self.phi = nn.Conv2d(channels, channels // 8, 1, bias=False)
        self.g = nn.Conv2d(channels, channels // 2, 1, bias=False)
        self.o = nn.Conv2d(channels // 2, channels, 1, bias=False)
        self.gamma = nn.Parameter(torch.zeros(()))

    def forward(self, x: Any) -> Any:
        batch, channels, height, width = x.shape
        theta = self.theta(x).view(batch, channels // 8, height * width)
        phi = F.max_pool2d(self.phi(x), 2).view(batch, channels // 8, height * width // 4)
        g = F.max_pool2d(self.g(x), 2).view(batch, channels // 2, height * width // 4)
        beta = F.softmax(torch.bmm(theta.transpose(1, 2), phi), -1)
        out = torch.bmm(g, beta.transpose(1, 2)).view(batch, channels // 2, height, width)
        return self.gamma * self.o(out) + x


class GenerateBlock(nn.Module):
    def __init__(self, cin: int, cout: int, condition: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = ConditionalNorm(cin, condition), ConditionalNorm(cout, condition)
        self.conv1, self.conv2 = nn.Conv2d(cin, cout, 3, padding=1), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1)

    def forward(self, x: Any, y: Any) -> Any:
        h = F.relu(self.norm1(x, y))
        h = F.interpolate(h, scale_factor=2)
        x = F.interpolate(x, scale_factor=2)
        h = self.conv1(h)
        h = F.relu(self.norm2(h, y))
        return self.conv2(h) + self.skip(x)


class BigGenerator(nn.Module):
    def __init__(self, ch: int = 96) -> None:
        super().__init__()
        self.shared = nn.Embedding(1000, 128)
        self.linear = nn.Linear(20, 16 * ch * 16)
        widths = [16 * ch, 16 * ch, 8 * ch, 4 * ch, 2 * ch, ch]
        self.blocks = nn.ModuleList([GenerateBlock(a, b, 148) for a, b in pairwise(widths)])
        self.attention = SelfAttention(2 * ch)
        self.out = nn.Sequential(nn.BatchNorm2d(ch), nn.ReLU(True), nn.Conv2d(ch, 3, 3, padding=1))
        self.ch = ch

    def forward(self, noise: Any, label: Any) -> Any:
        y = self.shared(label)
        parts = torch.split(noise, 20, 1)
        h = self.linear(parts[0]).view(noise.size(0), 16 * self.ch, 4, 4)
        for index, block in enumerate(self.blocks):
            h = block(h, torch.cat([y, parts[index + 1]], 1))
            if index == 3:
                h = self.attention(h)
        return torch.tanh(self.out(h))


class JudgeBlock(nn.Module):
    def __init__(self, cin: int, cout: int, first: bool, down: bool) -> None:
        super().__init__()
        self.first, self.down = first, down
        self.conv1, self.conv2 = nn.Conv2d(cin, cout, 3, padding=1), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout or down else None

    def forward(self, x: Any) -> Any:
        h = x if self.first else F.relu(x)
        h = self.conv2(F.relu(self.conv1(h)))
        if self.down:
            h = F.avg_pool2d(h, 2)
        if self.skip is not None:
            x = self.skip(F.avg_pool2d(x, 2)) if self.first else self.skip(x)
            if self.down and not self.first:
                x = F.avg_pool2d(x, 2)
        return h + x


class BigDiscriminator(nn.Module):
    def __init__(self, ch: int = 96) -> None:
        super().__init__()
        widths = [3, ch, 2 * ch, 4 * ch, 8 * ch, 16 * ch, 16 * ch]
        pairs = list(pairwise(widths))
        self.blocks = nn.ModuleList([JudgeBlock(a, b, i == 0, i < 5) for i, (a, b) in enumerate(pairs)])
        self.attention = SelfAttention(ch)
        self.linear, self.embed = nn.Linear(16 * ch, 1), nn.Embedding(1000, 16 * ch)

    def forward(self, x: Any, label: Any) -> Any:
        for index, block in enumerate(self.blocks):
            x = block(x)
            if index == 0:
                x = self.attention(x)
        h = F.relu(x).sum([2, 3])
        return self.linear(h) + (self.embed(label) * h).sum(1, keepdim=True)


def build_biggan(variant: Any, sizes: dict[str, Any]) -> Any:
    half = HALF.get(variant.precision, torch.float32)
    pair = Pair(BigGenerator(), BigDiscriminator()).to(half)
    batch = sizes["batch"]
    real, label = torch.randn(batch, 3, 128, 128, dtype=half), torch.randint(0, 1000, (batch,))
    noise = torch.randn(batch, 120, dtype=half)
    if variant.task == "infer":
        return pair.generator, lambda: pair.generator(noise, label), [noise, label]

    def step() -> Any:
        fake = pair.generator(noise, label)
        judged = pair.discriminator(torch.cat([fake.detach(), real]), torch.cat([label, label]))
        bad, good = judged[:batch], judged[batch:]
        (F.relu(1 - good).mean() + F.relu(1 + bad).mean()).backward()
        return -pair.discriminator(fake, label).mean()

    return pair, step, [real, label, noise]


# The U-Net of Stable Diffusion 1.5.


class ResBlock(nn.Module):
    def __init__(self, cin: int, cout: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.time = nn.Linear(1280, cout)
        self.norm2, self.conv2 = nn.GroupNorm(32, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else None

    def forward(self, x: Any, time: Any) -> Any:
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(time))[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + (self.skip(x) if self.skip is not None else x)


class CrossAttention(nn.Module):
    def __init__(self, width: int, context: int, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(context, width, bias=False), nn.Linear(context, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any, context: Any) -> Any:
        batch, tokens, width = x.shape
        q, k, v = (
            each.view(batch, -1, self.heads, width // self.heads).transpose(1, 2)
            for each in (self.q(x), self.k(context), self.v(context))
        )
        out = F.scaled_dot_product_attention(q, k, v)
        return self.out(out.transpose(1, 2).reshape(batch, tokens, width))


class TransformerBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.into = nn.GroupNorm(32, width, eps=1e-6), nn.Conv2d(width, width, 1)
        self.norm1, self.attn1 = nn.LayerNorm(width), CrossAttention(width, width)
        self.norm2, self.attn2 = nn.LayerNorm(width), CrossAttention(width, 768)
        self.norm3, self.up, self.down = (
            nn.LayerNorm(width),
            nn.Linear(width, 8 * width),
            nn.Linear(4 * width, width),
        )
        self.back = nn.Conv2d(width, width, 1)

    def forward(self, x: Any, context: Any) -> Any:
        batch, width, side, _ = x.shape
        h = self.into(self.norm(x)).permute(0, 2, 3, 1).reshape(batch, side * side, width)
        y = self.norm1(h)
        h = self.attn1(y, y) + h
        h = self.attn2(self.norm2(h), context) + h
        value, gate = self.up(self.norm3(h)).chunk(2, dim=-1)
        h = self.down(value * F.gelu(gate)) + h
        h = h.reshape(batch, side, side, width).permute(0, 3, 1, 2)
        return self.back(h) + x


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(320, 1280), nn.SiLU(), nn.Linear(1280, 1280))
        self.conv_in = nn.Conv2d(4, 320, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        widths, skips, width = (320, 640, 1280, 1280), [320], 320
        for level, out in enumerate(widths):
            for _ in range(2):
                self.down.append(
                    nn.ModuleList([ResBlock(width, out), *([TransformerBlock(out)] if level < 3 else [])])
                )
                width = out
                skips.append(width)
            if level < 3:
                self.down.append(nn.ModuleList([nn.Conv2d(width, width, 3, 2, 1)]))
                skips.append(width)
        self.mid = nn.ModuleList([ResBlock(1280, 1280), TransformerBlock(1280), ResBlock(1280, 1280)])
        for level, out in reversed(list(enumerate(widths))):
            for index in range(3):
                parts: list[nn.Module] = [ResBlock(width + skips.pop(), out)]
                width = out
                if level < 3:
                    parts.append(TransformerBlock(out))
                if index == 2 and level:
                    parts.append(nn.Conv2d(out, out, 3, padding=1))
                self.up.append(nn.ModuleList(parts))
        self.norm, self.conv_out = nn.GroupNorm(32, 320), nn.Conv2d(320, 4, 3, padding=1)

    def forward(self, x: Any, steps: Any, context: Any) -> Any:
        time = self.time(steps)
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
            elif isinstance(part, TransformerBlock):
                h = part(h, context)
            elif part.stride[0] == 2:
                h = part(h)
            else:
                h = part(F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return h


LATENT = 64
TOKENS = 77


def build_unet(variant: Any, sizes: dict[str, Any]) -> Any:
    half = HALF.get(variant.precision, torch.float32)
    net = UNet().to(half)
    batch, side = sizes["batch"], sizes.get("image", LATENT)
    x, noise = torch.randn(batch, 4, side, side, dtype=half), torch.randn(batch, 4, side, side, dtype=half)
    steps, context = torch.randn(batch, 320, dtype=half), torch.randn(batch, TOKENS, 768, dtype=half)
    if variant.task == "infer":
        return net, lambda: net(x, steps, context), [x, steps, context]
    return net, lambda: F.mse_loss(net(x, steps, context), noise), [x, noise, steps, context]


VARIANTS = ("train+fp32", "train+amp-bf16", "train+bf16", "infer+fp32", "infer+bf16", "infer+amp-bf16")
MODELS: dict[str, tuple[Any, dict[str, int], tuple[str, ...]]] = {
    "dcgan": (build_dcgan, {"batch": 6}, VARIANTS),
    "biggan-128": (build_biggan, {"batch": 6}, VARIANTS),
    "unet-diffusion-sd15": (build_unet, {"batch": 6}, VARIANTS),
}
