"""High-resolution network for segmentation of aerial images: parallel branches, fusion, dice + cross entropy."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv(i, o, k=3, s=1):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o))


class Basic(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b, self.relu = conv(c, c), conv(c, c), nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.b(self.relu(self.a(x))) + x)


class Stage(nn.Module):
    def __init__(self, widths, blocks=4):
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*[Basic(w) for _ in range(blocks)]) for w in widths)
        self.fuse = nn.ModuleList()
        for i, wi in enumerate(widths):
            row = nn.ModuleList()
            for j, wj in enumerate(widths):
                if j > i:
                    row.append(conv(wj, wi, 1))
                elif j == i:
                    row.append(nn.Identity())
                else:
                    row.append(nn.Sequential(*[m for k in range(i - j) for m in (conv(wj, wi if k == i - j - 1 else wj, 3, 2), *([nn.ReLU(inplace=True)] if k < i - j - 1 else []))]))
            self.fuse.append(row)

    def forward(self, xs):
        xs = [b(x) for b, x in zip(self.branches, xs)]
        out = []
        for i, row in enumerate(self.fuse):
            y = 0
            for j, f in enumerate(row):
                z = f(xs[j])
                if j > i:
                    z = F.interpolate(z, size=xs[i].shape[-2:], mode="bilinear", align_corners=False)
                y = y + z
            out.append(F.relu(y))
        return out


class HRNet(nn.Module):
    def __init__(self, w=32, classes=6):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 64, 3, 2), nn.ReLU(inplace=True), conv(64, 64, 3, 2), nn.ReLU(inplace=True), *[Basic(64) for _ in range(4)])
        ws = [w * 2**i for i in range(4)]
        self.grow = nn.ModuleList([nn.Sequential(conv(64, ws[0]), nn.ReLU(inplace=True))] + [nn.Sequential(conv(ws[i], ws[i + 1], 3, 2), nn.ReLU(inplace=True)) for i in range(3)])
        self.stages = nn.ModuleList([Stage(ws[:2]), Stage(ws[:3]), Stage(ws[:3]), Stage(ws[:4])])
        self.head = nn.Sequential(conv(sum(ws), sum(ws), 1), nn.ReLU(inplace=True), nn.Conv2d(sum(ws), classes, 1))

    def forward(self, x):
        size = x.shape[-2:]
        xs = [self.grow[0](self.stem(x))]
        for i, n in enumerate((2, 3, 3, 4)):
            if len(xs) < n:
                xs.append(self.grow[n - 1](xs[-1]))
            xs = self.stages[i](xs)
        h, w = xs[0].shape[-2:]
        x = torch.cat([xs[0]] + [F.interpolate(z, size=(h, w), mode="bilinear", align_corners=False) for z in xs[1:]], 1)
        return F.interpolate(self.head(x), size=size, mode="bilinear", align_corners=False)


def dice(logits, target, eps=1.0):
    p = logits.softmax(1)
    t = F.one_hot(target, p.shape[1]).permute(0, 3, 1, 2).float()
    inter, total = (p * t).sum((0, 2, 3)), (p + t).sum((0, 2, 3))
    return 1 - ((2 * inter + eps) / (total + eps)).mean()


torch.backends.cudnn.benchmark = True
net = HRNet().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4)
poly = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=1000, power=0.9)
for it in range(50):
    x, y = torch.randn(16, 3, 512, 512).cuda(), torch.randint(0, 6, (16, 512, 512)).cuda()
    logits = net(x)
    loss = F.cross_entropy(logits, y) + dice(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    poly.step()
    if it % 10 == 0:
        acc = (logits.argmax(1) == y).float().mean()
        print(f"{it} loss={loss.item():.3f} acc={acc.item():.3f}")
