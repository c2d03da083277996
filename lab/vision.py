"""The zoo's image models: torchvision's architectures, written out so that recording needs PyTorch alone.

Only what decides memory and time is kept: layers, their order, what is in place, which local name keeps a
tensor alive. A stage is a `Sequential` of its own, as there: whoever calls one holds its input until it returns.
Parameter counts are checked against torchvision's in tests/unit/workload/test_zoo.py.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # its usual name
from torch import nn


def conv_bn(
    cin: int,
    cout: int,
    kernel: Any = 3,
    stride: int = 1,
    padding: Any = None,
    groups: int = 1,
    act: Any = nn.ReLU,
) -> nn.Sequential:
    padding = (kernel - 1) // 2 if padding is None else padding
    layers = [nn.Conv2d(cin, cout, kernel, stride, padding, groups=groups, bias=False), nn.BatchNorm2d(cout)]
    return nn.Sequential(*layers, *([act(inplace=True)] if act else []))


# AlexNet, VGG, SqueezeNet: plain stacks.


class Classifier(nn.Module):
    """Features, pooling, flattening, a head."""

    def __init__(self, features: nn.Module, pool: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features, self.pool, self.head = features, pool, head

    def forward(self, x: Any) -> Any:
        x = self.features(x)
        x = self.pool(x)
        x = torch.flatten(x, 1)
        return self.head(x)


class AdaptivePool(nn.Module):
    """Adaptive average pooling whose output is fixed, whatever symbol the input carries."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Any) -> Any:
        return torch.ops.aten._adaptive_avg_pool2d(x, [self.size, self.size])


def alexnet() -> nn.Module:
    relu = partial(nn.ReLU, inplace=True)
    features = nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), relu(), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2), relu(), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), relu(), nn.Conv2d(384, 256, 3, padding=1), relu(),
        nn.Conv2d(256, 256, 3, padding=1), relu(), nn.MaxPool2d(3, 2),
    )  # fmt: skip
    head = nn.Sequential(
        nn.Dropout(),
        nn.Linear(256 * 36, 4096),
        relu(),
        nn.Dropout(),
        nn.Linear(4096, 4096),
        relu(),
        nn.Linear(4096, 1000),
    )
    return Classifier(features, AdaptivePool(6), head)


VGG = {
    11: "64 M 128 M 256 256 M 512 512 M 512 512 M",
    16: "64 64 M 128 128 M 256 256 256 M 512 512 512 M 512 512 512 M",
    19: "64 64 M 128 128 M 256 256 256 256 M 512 512 512 512 M 512 512 512 512 M",
}


def vgg(depth: int) -> nn.Module:
    layers: list[nn.Module] = []
    channels = 3
    for word in VGG[depth].split():
        if word == "M":
            layers.append(nn.MaxPool2d(2, 2))
            continue
        layers += [nn.Conv2d(channels, int(word), 3, padding=1), nn.ReLU(True)]
        channels = int(word)
    head = nn.Sequential(
        nn.Linear(512 * 49, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(),
        nn.Linear(4096, 1000),
    )  # fmt: skip
    return Classifier(nn.Sequential(*layers), AdaptivePool(7), head)


class Fire(nn.Module):
    def __init__(self, cin: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(cin, squeeze, 1)
        self.squeeze_act = nn.ReLU(True)
        self.one, self.one_act = nn.Conv2d(squeeze, expand, 1), nn.ReLU(True)
        self.three, self.three_act = nn.Conv2d(squeeze, expand, 3, padding=1), nn.ReLU(True)

    def forward(self, x: Any) -> Any:
        x = self.squeeze_act(self.squeeze(x))
        return torch.cat([self.one_act(self.one(x)), self.three_act(self.three(x))], 1)


def squeezenet1_0() -> nn.Module:
    features = nn.Sequential(
        nn.Conv2d(3, 96, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(96, 16, 64), Fire(128, 16, 64), Fire(128, 32, 128), nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(256, 32, 128), Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256),
        nn.MaxPool2d(3, 2, ceil_mode=True), Fire(512, 64, 256),
    )  # fmt: skip
    head = nn.Sequential(nn.Dropout(0.5), nn.Conv2d(512, 1000, 1), nn.ReLU(True), nn.AdaptiveAvgPool2d(1))
    return nn.Sequential(features, head, nn.Flatten())


# ResNet and its kin.


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, cin: int, width: int, stride: int, down: Any, groups: int = 1, base: int = 64) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.downsample = down

    def forward(self, x: Any) -> Any:
        identity = x
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        out = self.conv2(out)
        out = self.bn2(out)
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(
        self, cin: int, planes: int, stride: int, down: Any, groups: int = 1, base: int = 64
    ) -> None:
        super().__init__()
        width = int(planes * (base / 64.0)) * groups
        self.conv1, self.bn1 = nn.Conv2d(cin, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, planes * 4, 1, bias=False), nn.BatchNorm2d(planes * 4)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = down

    def forward(self, x: Any) -> Any:
        identity = x
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        out = self.conv2(out)
        out = self.bn2(out)
        out = self.relu(out)
        out = self.conv3(out)
        out = self.bn3(out)
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


def resnet(block: Any, counts: tuple[int, ...], groups: int = 1, base: int = 64) -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
    ]
    layers.append(nn.MaxPool2d(3, 2, 1))
    channels = 64
    for stage, count in enumerate(counts):
        planes = 64 << stage
        blocks: list[nn.Module] = []
        for index in range(count):
            stride = 2 if stage and not index else 1
            down = None
            if stride != 1 or channels != planes * block.expansion:
                down = nn.Sequential(
                    nn.Conv2d(channels, planes * block.expansion, 1, stride, bias=False),
                    nn.BatchNorm2d(planes * block.expansion),
                )
            blocks.append(block(channels, planes, stride, down, groups, base))
            channels = planes * block.expansion
        layers.append(nn.Sequential(*blocks))
    return Classifier(nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), nn.Linear(channels, 1000))


# DenseNet.


class DenseLayer(nn.Module):
    def __init__(self, cin: int, growth: int = 32, bottleneck: int = 4) -> None:
        super().__init__()
        self.norm1, self.relu1 = nn.BatchNorm2d(cin), nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(cin, bottleneck * growth, 1, bias=False)
        self.norm2, self.relu2 = nn.BatchNorm2d(bottleneck * growth), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bottleneck * growth, growth, 3, padding=1, bias=False)

    def bottleneck(self, inputs: list[Any]) -> Any:
        joined = torch.cat(inputs, 1)
        return self.conv1(self.relu1(self.norm1(joined)))

    def forward(self, inputs: list[Any]) -> Any:
        middle = self.bottleneck(inputs)
        return self.conv2(self.relu2(self.norm2(middle)))


class DenseBlock(nn.Module):
    def __init__(self, cin: int, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([DenseLayer(cin + 32 * index) for index in range(count)])

    def forward(self, first: Any) -> Any:
        features = [first]
        for layer in self.layers:
            new = layer(features)
            features.append(new)
        return torch.cat(features, 1)


class DenseNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
        ]
        layers.append(nn.MaxPool2d(3, 2, 1))
        channels = 64
        for place, count in enumerate((6, 12, 24, 16)):
            layers.append(DenseBlock(channels, count))
            channels += 32 * count
            if place < 3:
                half = channels // 2
                layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
                layers += [nn.Conv2d(channels, half, 1, bias=False), nn.AvgPool2d(2, 2)]
                channels = half
        layers.append(nn.BatchNorm2d(channels))
        self.features, self.classifier = nn.Sequential(*layers), nn.Linear(channels, 1000)

    def forward(self, x: Any) -> Any:
        features = self.features(x)
        out = F.relu(features, inplace=True)
        out = F.adaptive_avg_pool2d(out, (1, 1))
        out = torch.flatten(out, 1)
        return self.classifier(out)


# GoogLeNet and Inception v3.


class BasicConv(nn.Module):
    def __init__(self, cin: int, cout: int, **kwargs: Any) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(cin, cout, bias=False, **kwargs), nn.BatchNorm2d(cout, eps=0.001)

    def forward(self, x: Any) -> Any:
        x = self.conv(x)
        x = self.bn(x)
        return F.relu(x, inplace=True)


class Branches(nn.Module):
    """Branches side by side, joined along the channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Any) -> Any:
        return torch.cat([branch(x) for branch in self.branches], 1)


def googlenet() -> nn.Module:
    def block(cin: int, one: int, red3: int, three: int, red5: int, five: int, pool: int) -> nn.Module:
        return Branches(
            BasicConv(cin, one, kernel_size=1),
            nn.Sequential(
                BasicConv(cin, red3, kernel_size=1), BasicConv(red3, three, kernel_size=3, padding=1)
            ),
            nn.Sequential(
                BasicConv(cin, red5, kernel_size=1), BasicConv(red5, five, kernel_size=3, padding=1)
            ),
            nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), BasicConv(cin, pool, kernel_size=1)),
        )

    features = nn.Sequential(
        BasicConv(3, 64, kernel_size=7, stride=2, padding=3), nn.MaxPool2d(3, 2, ceil_mode=True),
        BasicConv(64, 64, kernel_size=1), BasicConv(64, 192, kernel_size=3, padding=1),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        block(192, 64, 96, 128, 16, 32, 32), block(256, 128, 128, 192, 32, 96, 64), nn.MaxPool2d(3, 2, ceil_mode=True),
        block(480, 192, 96, 208, 16, 48, 64), block(512, 160, 112, 224, 24, 64, 64),
        block(512, 128, 128, 256, 24, 64, 64), block(512, 112, 144, 288, 32, 64, 64),
        block(528, 256, 160, 320, 32, 128, 128), nn.MaxPool2d(2, 2, ceil_mode=True),
        block(832, 256, 160, 320, 32, 128, 128), block(832, 384, 192, 384, 48, 128, 128),
    )  # fmt: skip
    return Classifier(
        features, nn.AdaptiveAvgPool2d(1), nn.Sequential(nn.Dropout(0.2), nn.Linear(1024, 1000))
    )


class AveragePool(nn.Module):
    def forward(self, x: Any) -> Any:
        return F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)


class MaxPool(nn.Module):
    def forward(self, x: Any) -> Any:
        return F.max_pool2d(x, kernel_size=3, stride=2)


class Fork(nn.Module):
    """A stem and two convolutions on it, joined."""

    def __init__(self, stem: nn.Module, left: nn.Module, right: nn.Module) -> None:
        super().__init__()
        self.stem, self.left, self.right = stem, left, right

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        return torch.cat([self.left(x), self.right(x)], 1)


def inception_v3() -> nn.Module:
    conv = BasicConv

    def a(cin: int, pool: int) -> nn.Module:
        return Branches(
            conv(cin, 64, kernel_size=1),
            nn.Sequential(conv(cin, 48, kernel_size=1), conv(48, 64, kernel_size=5, padding=2)),
            nn.Sequential(
                conv(cin, 64, kernel_size=1),
                conv(64, 96, kernel_size=3, padding=1),
                conv(96, 96, kernel_size=3, padding=1),
            ),
            nn.Sequential(AveragePool(), conv(cin, pool, kernel_size=1)),
        )

    def b(cin: int) -> nn.Module:
        return Branches(
            conv(cin, 384, kernel_size=3, stride=2),
            nn.Sequential(
                conv(cin, 64, kernel_size=1),
                conv(64, 96, kernel_size=3, padding=1),
                conv(96, 96, kernel_size=3, stride=2),
            ),
            MaxPool(),
        )

    row: Callable[[int, int], nn.Module] = lambda i, o: conv(i, o, kernel_size=(1, 7), padding=(0, 3))  # noqa: E731
    column: Callable[[int, int], nn.Module] = lambda i, o: conv(i, o, kernel_size=(7, 1), padding=(3, 0))  # noqa: E731

    def c(c7: int) -> nn.Module:
        return Branches(
            conv(768, 192, kernel_size=1),
            nn.Sequential(conv(768, c7, kernel_size=1), row(c7, c7), column(c7, 192)),
            nn.Sequential(
                conv(768, c7, kernel_size=1), column(c7, c7), row(c7, c7), column(c7, c7), row(c7, 192)
            ),
            nn.Sequential(AveragePool(), conv(768, 192, kernel_size=1)),
        )

    def d() -> nn.Module:
        return Branches(
            nn.Sequential(conv(768, 192, kernel_size=1), conv(192, 320, kernel_size=3, stride=2)),
            nn.Sequential(
                conv(768, 192, kernel_size=1),
                row(192, 192),
                column(192, 192),
                conv(192, 192, kernel_size=3, stride=2),
            ),
            MaxPool(),
        )

    def e(cin: int) -> nn.Module:
        left: Callable[[], nn.Module] = lambda: conv(384, 384, kernel_size=(1, 3), padding=(0, 1))  # noqa: E731
        right: Callable[[], nn.Module] = lambda: conv(384, 384, kernel_size=(3, 1), padding=(1, 0))  # noqa: E731
        return Branches(
            conv(cin, 320, kernel_size=1),
            Fork(conv(cin, 384, kernel_size=1), left(), right()),
            Fork(
                nn.Sequential(conv(cin, 448, kernel_size=1), conv(448, 384, kernel_size=3, padding=1)),
                left(),
                right(),
            ),
            nn.Sequential(AveragePool(), conv(cin, 192, kernel_size=1)),
        )

    features = nn.Sequential(
        conv(3, 32, kernel_size=3, stride=2), conv(32, 32, kernel_size=3), conv(32, 64, kernel_size=3, padding=1),
        nn.MaxPool2d(3, 2), conv(64, 80, kernel_size=1), conv(80, 192, kernel_size=3), nn.MaxPool2d(3, 2),
        a(192, 32), a(256, 64), a(288, 64), b(288), c(128), c(160), c(160), c(192), d(), e(1280), e(2048),
        nn.AdaptiveAvgPool2d(1), nn.Dropout(),
    )  # fmt: skip
    return nn.Sequential(features, nn.Flatten(), nn.Linear(2048, 1000))


# MobileNet, EfficientNet, ShuffleNet.


def divisible(value: float, by: int = 8) -> int:
    new = max(by, int(value + by / 2) // by * by)
    return new + by if new < 0.9 * value else new


class Residual(nn.Module):
    def __init__(self, body: nn.Module, skip: bool, drop: float = 0.0) -> None:
        super().__init__()
        self.body, self.skip, self.drop = body, skip, drop

    def forward(self, x: Any) -> Any:
        result = self.body(x)
        if self.skip:
            if self.drop and self.training:
                noise = torch.empty([x.shape[0]] + [1] * (x.dim() - 1), dtype=x.dtype)
                noise = noise.bernoulli_(1 - self.drop)
                noise.div_(1 - self.drop)
                result = result * noise
                del noise
            result = result + x if self.drop else x + result
        return result


def mobilenet_v2() -> nn.Module:
    act = nn.ReLU6
    layers: list[nn.Module] = [conv_bn(3, 32, 3, 2, act=act)]
    cin = 32
    for expand, cout, count, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for index in range(count):
            step = stride if not index else 1
            hidden = cin * expand
            body = [conv_bn(cin, hidden, 1, act=act)] if expand != 1 else []
            body += [conv_bn(hidden, hidden, 3, step, groups=hidden, act=act)]
            body += [nn.Conv2d(hidden, cout, 1, bias=False), nn.BatchNorm2d(cout)]
            layers.append(Residual(nn.Sequential(*body), step == 1 and cin == cout))
            cin = cout
    layers.append(conv_bn(320, 1280, 1, act=act))
    head = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))
    return Classifier(nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), head)


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, squeeze: int, act: Any = nn.ReLU, gate: Any = nn.Sigmoid) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeeze, 1), nn.Conv2d(squeeze, channels, 1)
        self.act, self.gate = act(), gate()

    def scale(self, x: Any) -> Any:
        scale = self.pool(x)
        scale = self.fc1(scale)
        scale = self.act(scale)
        scale = self.fc2(scale)
        return self.gate(scale)

    def forward(self, x: Any) -> Any:
        scale = self.scale(x)
        return scale * x


def mobilenet_v3_large() -> nn.Module:
    swish = nn.Hardswish
    bn = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
    layers: list[nn.Module] = [conv_bn(3, 16, 3, 2, act=swish)]
    for cin, kernel, hidden, cout, excite, hard, stride in (
        (16, 3, 16, 16, 0, 0, 1), (16, 3, 64, 24, 0, 0, 2), (24, 3, 72, 24, 0, 0, 1), (24, 5, 72, 40, 1, 0, 2),
        (40, 5, 120, 40, 1, 0, 1), (40, 5, 120, 40, 1, 0, 1), (40, 3, 240, 80, 0, 1, 2), (80, 3, 200, 80, 0, 1, 1),
        (80, 3, 184, 80, 0, 1, 1), (80, 3, 184, 80, 0, 1, 1), (80, 3, 480, 112, 1, 1, 1), (112, 3, 672, 112, 1, 1, 1),
        (112, 5, 672, 160, 1, 1, 2), (160, 5, 960, 160, 1, 1, 1), (160, 5, 960, 160, 1, 1, 1),
    ):  # fmt: skip
        act = swish if hard else nn.ReLU
        body = [conv_bn(cin, hidden, 1, act=act)] if hidden != cin else []
        body += [conv_bn(hidden, hidden, kernel, stride, groups=hidden, act=act)]
        if excite:
            body.append(SqueezeExcite(hidden, divisible(hidden // 4), gate=nn.Hardsigmoid))
        body += [nn.Conv2d(hidden, cout, 1, bias=False), bn(cout)]
        layers.append(Residual(nn.Sequential(*body), stride == 1 and cin == cout))
    layers.append(conv_bn(160, 960, 1, act=swish))
    head = nn.Sequential(
        nn.Linear(960, 1280), swish(inplace=True), nn.Dropout(0.2, inplace=True), nn.Linear(1280, 1000)
    )
    return Classifier(nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), head)


def efficientnet(width: float, depth: float, dropout: float) -> nn.Module:
    import math

    act = nn.SiLU
    stages = (
        (1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3),
        (6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1),
    )  # fmt: skip
    layers: list[nn.Module] = [conv_bn(3, divisible(32 * width), 3, 2, act=act)]
    total = sum(math.ceil(count * depth) for *_, count in stages)
    made = 0
    for expand, kernel, stride, first, last, count in stages:
        cin, cout = divisible(first * width), divisible(last * width)
        blocks: list[nn.Module] = []
        for index in range(math.ceil(count * depth)):
            here, step = (cin, stride) if not index else (cout, 1)
            hidden = divisible(here * expand)
            body = [conv_bn(here, hidden, 1, act=act)] if hidden != here else []
            body += [conv_bn(hidden, hidden, kernel, step, groups=hidden, act=act)]
            body += [SqueezeExcite(hidden, max(1, here // 4), partial(act, inplace=True))]
            body += [nn.Conv2d(hidden, cout, 1, bias=False), nn.BatchNorm2d(cout)]
            blocks.append(
                Residual(nn.Sequential(*body), step == 1 and here == cout, 0.2 * made / total or 1e-9)
            )
            made += 1
        layers.append(nn.Sequential(*blocks))
    cin = divisible(320 * width)
    layers.append(conv_bn(cin, 4 * cin, 1, act=act))
    head = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(4 * cin, 1000))
    return Classifier(nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), head)


class Shuffle(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        half = cout // 2
        self.left = nn.Sequential()
        if stride > 1:
            self.left = nn.Sequential(
                nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False), nn.BatchNorm2d(cin),
                nn.Conv2d(cin, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU(inplace=True),
            )  # fmt: skip
        self.right = nn.Sequential(
            nn.Conv2d(cin if stride > 1 else half, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU(inplace=True),
            nn.Conv2d(half, half, 3, stride, 1, groups=half, bias=False), nn.BatchNorm2d(half),
            nn.Conv2d(half, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        if self.stride == 1:
            x1, x2 = x.chunk(2, dim=1)
            out = torch.cat((x1, self.right(x2)), dim=1)
        else:
            out = torch.cat((self.left(x), self.right(x)), dim=1)
        return self.shuffled(out)

    def shuffled(self, x: Any) -> Any:
        batch, channels, height, width = x.size()
        x = x.view(batch, 2, channels // 2, height, width)
        x = torch.transpose(x, 1, 2).contiguous()
        return x.view(batch, channels, height, width)


class ShuffleNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_bn(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)]
        cin = 24
        for count, cout in ((4, 116), (8, 232), (4, 464)):
            blocks = [Shuffle(cin if not index else cout, cout, 1 if index else 2) for index in range(count)]
            layers.append(nn.Sequential(*blocks))
            cin = cout
        layers.append(conv_bn(cin, 1024, 1))
        self.features, self.fc = nn.Sequential(*layers), nn.Linear(1024, 1000)

    def forward(self, x: Any) -> Any:
        x = self.features(x)
        x = x.mean([2, 3])
        return self.fc(x)


# RegNet.


class RegNetBlock(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int, group: int, ratio: float) -> None:
        super().__init__()
        self.proj = conv_bn(cin, cout, 1, stride, act=None) if cin != cout or stride != 1 else None
        self.body = nn.Sequential(
            conv_bn(cin, cout, 1), conv_bn(cout, cout, 3, stride, groups=cout // group),
            SqueezeExcite(cout, round(ratio * cin)), conv_bn(cout, cout, 1, act=None),
        )  # fmt: skip
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        x = self.proj(x) + self.body(x) if self.proj is not None else x + self.body(x)
        return self.act(x)


def regnet_y_8gf() -> nn.Module:
    stages: list[nn.Module] = []
    cin = 32
    for cout, count in ((224, 2), (448, 4), (896, 10), (2016, 1)):
        blocks = [
            RegNetBlock(cin if not index else cout, cout, 1 if index else 2, 56, 0.25)
            for index in range(count)
        ]
        stages.append(nn.Sequential(*blocks))
        cin = cout
    features = nn.Sequential(conv_bn(3, 32, 3, 2), nn.Sequential(*stages))
    return Classifier(features, nn.AdaptiveAvgPool2d(1), nn.Linear(cin, 1000))


# ConvNeXt, ViT, Swin.


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x: Any) -> Any:
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class Permute(nn.Module):
    def __init__(self, *dims: int) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Any) -> Any:
        return torch.permute(x, self.dims)


def stochastic_depth(x: Any, p: float, training: bool) -> Any:
    if p == 0.0 or not training:
        return x
    noise = torch.empty([x.shape[0]] + [1] * (x.dim() - 1), dtype=x.dtype)
    noise = noise.bernoulli_(1 - p)
    noise.div_(1 - p)
    return x * noise


class ConvNeXtBlock(nn.Module):
    def __init__(self, width: int, drop: float) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(width, width, 7, padding=3, groups=width), Permute(0, 2, 3, 1), nn.LayerNorm(width, eps=1e-6),
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), Permute(0, 3, 1, 2),
        )  # fmt: skip
        self.layer_scale = nn.Parameter(torch.ones(width, 1, 1) * 1e-6)
        self.drop = drop

    def forward(self, x: Any) -> Any:
        result = self.layer_scale * self.block(x)
        result = stochastic_depth(result, self.drop, self.training)
        result += x
        return result


def convnext(widths: tuple[int, ...], counts: tuple[int, ...], drop: float) -> nn.Module:
    layers: list[nn.Module] = [nn.Sequential(nn.Conv2d(3, widths[0], 4, 4), LayerNorm2d(widths[0], eps=1e-6))]
    made, total = 0, sum(counts)
    for stage, (width, count) in enumerate(zip(widths, counts, strict=True)):
        blocks = [ConvNeXtBlock(width, drop * (made + index) / (total - 1.0)) for index in range(count)]
        layers.append(nn.Sequential(*blocks))
        made += count
        if stage < 3:
            layers.append(
                nn.Sequential(LayerNorm2d(width, eps=1e-6), nn.Conv2d(width, widths[stage + 1], 2, 2))
            )
    head = nn.Sequential(LayerNorm2d(widths[-1], eps=1e-6), nn.Flatten(1), nn.Linear(widths[-1], 1000))
    return nn.Sequential(nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), head)


class EncoderBlock(nn.Module):
    def __init__(self, width: int, heads: int, mlp: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=1e-6)
        self.attention = nn.MultiheadAttention(width, heads, dropout=0.0, batch_first=True)
        self.dropout = nn.Dropout(0.0)
        self.ln_2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(width, mlp),
            nn.GELU(),
            nn.Dropout(0.0, inplace=False),
            nn.Linear(mlp, width),
            nn.Dropout(0.0),
        )

    def forward(self, input: Any) -> Any:
        x = self.ln_1(input)
        x, _ = self.attention(x, x, x, need_weights=False)
        x = self.dropout(x)
        x = x + input
        y = self.ln_2(x)
        y = self.mlp(y)
        return x + y


class Encoder(nn.Module):
    def __init__(self, tokens: Any, width: int, layers: int, heads: int, mlp: int) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, tokens, width).normal_(std=0.02))
        self.dropout = nn.Dropout(0.0)
        self.layers = nn.Sequential(*[EncoderBlock(width, heads, mlp) for _ in range(layers)])
        self.ln = nn.LayerNorm(width, eps=1e-6)

    def forward(self, input: Any) -> Any:
        input = input + self.pos_embedding
        return self.ln(self.layers(self.dropout(input)))


class VisionTransformer(nn.Module):
    def __init__(self, image: Any, width: int, layers: int, heads: int, mlp: int, patch: int = 16) -> None:
        super().__init__()
        self.width, self.patch = width, patch
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.encoder = Encoder((image // patch) * (image // patch) + 1, width, layers, heads, mlp)
        self.head = nn.Linear(width, 1000)

    def embedded(self, x: Any) -> Any:
        n, _, h, w = x.shape
        side_h, side_w = h // self.patch, w // self.patch
        x = self.conv_proj(x)
        x = x.reshape(n, self.width, side_h * side_w)
        return x.permute(0, 2, 1)

    def forward(self, x: Any) -> Any:
        x = self.embedded(x)
        n = x.shape[0]
        batch_class_token = self.class_token.expand(n, -1, -1)
        x = torch.cat([batch_class_token, x], dim=1)
        x = self.encoder(x)
        x = x[:, 0]
        return self.head(x)


class WindowAttention(nn.Module):
    def __init__(self, width: int, shift: int, heads: int, window: int = 7) -> None:
        super().__init__()
        self.window, self.shift, self.heads = window, shift, heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        self.register_buffer("index", torch.zeros(window**4, dtype=torch.int64))

    def bias(self) -> Any:
        n = self.window * self.window
        bias = self.relative_position_bias_table[self.index]
        return bias.view(n, n, -1).permute(2, 0, 1).contiguous().unsqueeze(0)

    def forward(self, x: Any) -> Any:
        return self.attended(x, self.bias())

    def attended(self, input: Any, relative: Any) -> Any:
        window, (batch, height, width, channels) = self.window, input.shape
        pad_b, pad_r = (-height) % window, (-width) % window
        x = F.pad(input, (0, 0, 0, pad_r, 0, pad_b)) if pad_b or pad_r else input
        high, wide = height + pad_b, width + pad_r
        shift_h = 0 if window >= high else self.shift
        shift_w = 0 if window >= wide else self.shift
        if shift_h + shift_w > 0:
            x = torch.roll(x, shifts=(-shift_h, -shift_w), dims=(1, 2))
        windows = (high // window) * (wide // window)
        x = x.view(batch, high // window, window, wide // window, window, channels)
        x = x.permute(0, 1, 3, 2, 4, 5).reshape(batch * windows, window * window, channels)
        qkv = F.linear(x, self.qkv.weight, self.qkv.bias)
        qkv = qkv.reshape(x.size(0), x.size(1), 3, self.heads, channels // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        q = q * (channels // self.heads) ** -0.5
        attn = q.matmul(k.transpose(-2, -1))
        attn = attn + relative
        if shift_h + shift_w > 0:
            mask = self.mask(x, high, wide, windows)
            attn = attn.view(x.size(0) // windows, windows, self.heads, x.size(1), x.size(1))
            attn = attn + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, self.heads, x.size(1), x.size(1))
        attn = F.softmax(attn, dim=-1)
        x = attn.matmul(v).transpose(1, 2).reshape(x.size(0), x.size(1), channels)
        x = F.linear(x, self.proj.weight, self.proj.bias)
        x = x.view(batch, high // window, wide // window, window, window, channels)
        x = x.permute(0, 1, 3, 2, 4, 5).reshape(batch, high, wide, channels)
        if shift_h + shift_w > 0:
            x = torch.roll(x, shifts=(shift_h, shift_w), dims=(1, 2))
        if pad_b or pad_r:
            x = x[:, :height, :width, :].contiguous()
        return x

    def mask(self, x: Any, high: Any, wide: Any, windows: Any) -> Any:
        window = self.window
        mask = x.new_zeros((high, wide))
        mask = mask.view(high // window, window, wide // window, window)
        mask = mask.permute(0, 2, 1, 3).reshape(windows, window * window)
        mask = mask.unsqueeze(1) - mask.unsqueeze(2)
        return mask.masked_fill(mask != 0, (-100.0)).masked_fill(mask == 0, 0.0)


class SwinBlock(nn.Module):
    def __init__(self, width: int, heads: int, shift: int, drop: float) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, eps=1e-5), WindowAttention(width, shift, heads)
        self.drop = drop
        self.norm2 = nn.LayerNorm(width, eps=1e-5)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Dropout(0.0),
            nn.Linear(4 * width, width),
            nn.Dropout(0.0),
        )

    def forward(self, x: Any) -> Any:
        x = x + stochastic_depth(self.attn(self.norm1(x)), self.drop, self.training)
        return x + stochastic_depth(self.mlp(self.norm2(x)), self.drop, self.training)


class PatchMerging(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduction, self.norm = (
            nn.Linear(4 * width, 2 * width, bias=False),
            nn.LayerNorm(4 * width, eps=1e-5),
        )

    def merged(self, x: Any) -> Any:
        x0, x1 = x[..., 0::2, 0::2, :], x[..., 1::2, 0::2, :]
        x2, x3 = x[..., 0::2, 1::2, :], x[..., 1::2, 1::2, :]
        return torch.cat([x0, x1, x2, x3], -1)

    def forward(self, x: Any) -> Any:
        return self.reduction(self.norm(self.merged(x)))


class Swin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.Sequential(nn.Conv2d(3, 96, 4, 4), Permute(0, 2, 3, 1), nn.LayerNorm(96, eps=1e-5))
        ]
        made, width = 0, 96
        for stage, (count, heads) in enumerate(((2, 3), (2, 6), (6, 12), (2, 24))):
            blocks = [
                SwinBlock(width, heads, 0 if index % 2 == 0 else 3, 0.2 * (made + index) / 11)
                for index in range(count)
            ]
            layers.append(nn.Sequential(*blocks))
            made += count
            if stage < 3:
                layers.append(PatchMerging(width))
                width *= 2
        self.features, self.norm = nn.Sequential(*layers), nn.LayerNorm(width, eps=1e-5)
        self.permute, self.pool, self.head = (
            Permute(0, 3, 1, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Linear(width, 1000),
        )

    def forward(self, x: Any) -> Any:
        x = self.features(x)
        x = self.norm(x)
        x = self.permute(x)
        x = self.pool(x)
        x = torch.flatten(x, 1)
        return self.head(x)


def _fixed(make: Callable[[], nn.Module]) -> Callable[[Any], nn.Module]:
    return lambda image: make()


MODELS: dict[str, tuple[Callable[[Any], nn.Module], int]] = {
    "alexnet": (_fixed(alexnet), 224),
    "vgg11": (_fixed(lambda: vgg(11)), 224),
    "vgg16": (_fixed(lambda: vgg(16)), 224),
    "vgg19": (_fixed(lambda: vgg(19)), 224),
    "resnet18": (_fixed(lambda: resnet(BasicBlock, (2, 2, 2, 2))), 224),
    "resnet34": (_fixed(lambda: resnet(BasicBlock, (3, 4, 6, 3))), 224),
    "resnet50": (_fixed(lambda: resnet(Bottleneck, (3, 4, 6, 3))), 224),
    "resnet101": (_fixed(lambda: resnet(Bottleneck, (3, 4, 23, 3))), 224),
    "resnet152": (_fixed(lambda: resnet(Bottleneck, (3, 8, 36, 3))), 224),
    "resnext50_32x4d": (_fixed(lambda: resnet(Bottleneck, (3, 4, 6, 3), 32, 4)), 224),
    "resnext101_32x8d": (_fixed(lambda: resnet(Bottleneck, (3, 4, 23, 3), 32, 8)), 224),
    "wide_resnet50_2": (_fixed(lambda: resnet(Bottleneck, (3, 4, 6, 3), 1, 128)), 224),
    "densenet121": (_fixed(DenseNet), 224),
    "inception_v3": (_fixed(inception_v3), 299),
    "googlenet": (_fixed(googlenet), 224),
    "mobilenet_v2": (_fixed(mobilenet_v2), 224),
    "mobilenet_v3_large": (_fixed(mobilenet_v3_large), 224),
    "efficientnet_b0": (_fixed(lambda: efficientnet(1.0, 1.0, 0.2)), 224),
    "efficientnet_b4": (_fixed(lambda: efficientnet(1.4, 1.8, 0.4)), 380),
    "convnext_tiny": (_fixed(lambda: convnext((96, 192, 384, 768), (3, 3, 9, 3), 0.1)), 224),
    "convnext_base": (_fixed(lambda: convnext((128, 256, 512, 1024), (3, 3, 27, 3), 0.5)), 224),
    "vit_b_16": (lambda image: VisionTransformer(image, 768, 12, 12, 3072), 224),
    "vit_l_16": (lambda image: VisionTransformer(image, 1024, 24, 16, 4096), 224),
    "swin_t": (_fixed(Swin), 224),
    "regnet_y_8gf": (_fixed(regnet_y_8gf), 224),
    "squeezenet1_0": (_fixed(squeezenet1_0), 224),
    "shufflenet_v2_x1_0": (_fixed(ShuffleNet), 224),
}
