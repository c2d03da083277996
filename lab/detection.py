"""YOLOv8 as Ultralytics publishes it, in five sizes, for 80 classes.

The training loss here is plain (all predictions against fixed targets): assigning predictions to boxes depends on the
data. What it allocates is small beside the activations.
"""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # its usual name
from torch import nn

from lab.vision import conv_bn

SCALES = {
    "yolov8n": (0.33, 0.25, 1024),
    "yolov8s": (0.33, 0.50, 1024),
    "yolov8m": (0.67, 0.75, 768),
    "yolov8l": (1.00, 1.00, 512),
    "yolov8x": (1.00, 1.25, 512),
}
"""Depth, width and the most channels."""
CLASSES, BINS, PIXELS = 80, 16, 640


def conv(cin: int, cout: int, kernel: int = 1, stride: int = 1) -> nn.Module:
    return conv_bn(cin, cout, kernel, stride, act=nn.SiLU)


class Bottleneck(nn.Module):
    def __init__(self, width: int, add: bool) -> None:
        super().__init__()
        self.one, self.two, self.add = conv(width, width, 3), conv(width, width, 3), add

    def forward(self, x: Any) -> Any:
        return x + self.two(self.one(x)) if self.add else self.two(self.one(x))


class Split(nn.Module):
    """C2f: half of the channels go through bottlenecks, and all stages are joined."""

    def __init__(self, cin: int, cout: int, count: int, add: bool) -> None:
        super().__init__()
        half = cout // 2
        self.into, self.out = conv(cin, 2 * half), conv((2 + count) * half, cout)
        self.steps = nn.ModuleList(Bottleneck(half, add) for _ in range(count))

    def forward(self, x: Any) -> Any:
        parts = list(self.into(x).chunk(2, 1))
        for step in self.steps:
            parts.append(step(parts[-1]))
        return self.out(torch.cat(parts, 1))


class Pooling(nn.Module):
    """SPPF."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.into, self.out, self.pool = (
            conv(width, width // 2),
            conv(2 * width, width),
            nn.MaxPool2d(5, 1, 2),
        )

    def forward(self, x: Any) -> Any:
        parts = [self.into(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.out(torch.cat(parts, 1))


class Detect(nn.Module):
    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        box, kind = max(16, widths[0] // 4, 4 * BINS), max(widths[0], min(CLASSES, 100))
        self.boxes = nn.ModuleList(
            nn.Sequential(conv(w, box, 3), conv(box, box, 3), nn.Conv2d(box, 4 * BINS, 1)) for w in widths
        )
        self.kinds = nn.ModuleList(
            nn.Sequential(conv(w, kind, 3), conv(kind, kind, 3), nn.Conv2d(kind, CLASSES, 1)) for w in widths
        )
        self.bins = nn.Conv2d(BINS, 1, 1, bias=False).requires_grad_(False)

    def forward(self, levels: list[Any]) -> Any:
        found = [
            torch.cat((box(x), kind(x)), 1)
            for box, kind, x in zip(self.boxes, self.kinds, levels, strict=True)
        ]
        if self.training:
            return found
        flat = torch.cat([each.view(each.shape[0], 4 * BINS + CLASSES, -1) for each in found], 2)
        box, kind = flat.split((4 * BINS, CLASSES), 1)
        spread = box.view(box.shape[0], 4, BINS, -1).transpose(2, 1).softmax(1)
        sides = self.bins(spread).view(box.shape[0], 4, -1)
        return torch.cat((sides, kind.sigmoid()), 1)


class Yolo(nn.Module):
    def __init__(self, depth: float, width: float, most: int) -> None:
        super().__init__()
        c = [-(-int(min(each, most) * width) // 8) * 8 for each in (64, 128, 256, 512, 1024)]
        few, many = max(1, round(3 * depth)), max(1, round(6 * depth))
        self.two = nn.Sequential(conv(3, c[0], 3, 2), conv(c[0], c[1], 3, 2), Split(c[1], c[1], few, True))
        self.three = nn.Sequential(conv(c[1], c[2], 3, 2), Split(c[2], c[2], many, True))
        self.four = nn.Sequential(conv(c[2], c[3], 3, 2), Split(c[3], c[3], many, True))
        self.five = nn.Sequential(conv(c[3], c[4], 3, 2), Split(c[4], c[4], few, True), Pooling(c[4]))
        self.up_four = Split(c[4] + c[3], c[3], few, False)
        self.up_three = Split(c[3] + c[2], c[2], few, False)
        self.to_four, self.down_four = conv(c[2], c[2], 3, 2), Split(c[2] + c[3], c[3], few, False)
        self.to_five, self.down_five = conv(c[3], c[3], 3, 2), Split(c[3] + c[4], c[4], few, False)
        self.detect = Detect([c[2], c[3], c[4]])

    def forward(self, x: Any) -> Any:
        three = self.three(self.two(x))
        four = self.four(three)
        five = self.five(four)
        middle = self.up_four(torch.cat((F.interpolate(five, scale_factor=2.0, mode="nearest"), four), 1))
        large = self.up_three(torch.cat((F.interpolate(middle, scale_factor=2.0, mode="nearest"), three), 1))
        middle = self.down_four(torch.cat((self.to_four(large), middle), 1))
        small = self.down_five(torch.cat((self.to_five(middle), five), 1))
        return self.detect([large, middle, small])


def yolo(name: str) -> Yolo:
    return Yolo(*SCALES[name])


def build(name: str) -> Any:
    def made(variant: Any, sizes: dict[str, Any]) -> Any:
        half = {"bf16": torch.bfloat16}.get(variant.precision, torch.float32)
        net = yolo(name).to(half)
        x = torch.randn(sizes["batch"], 3, PIXELS, PIXELS, dtype=half)
        if variant.task == "infer":
            return net, lambda: net(x), [x]

        def loss() -> Any:
            total: Any = 0.0
            for level in net(x):
                box, kind = level.split((4 * BINS, CLASSES), 1)
                total = total + F.binary_cross_entropy_with_logits(
                    kind.float(), torch.zeros_like(kind).float()
                )
                total = total + box.float().pow(2).mean()
            return total

        return net, loss, [x]

    return made


VARIANTS = ("train+fp32", "train+amp-bf16", "train+bf16", "infer+fp32", "infer+bf16", "infer+amp-bf16")
MODELS: dict[str, tuple[Any, dict[str, int], tuple[str, ...]]] = {
    name: (build(name), {"batch": 6}, VARIANTS) for name in SCALES
}
