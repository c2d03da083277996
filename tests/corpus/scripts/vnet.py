"""3D segmentation of volumes in bfloat16: residual blocks, group norm, deep supervision, dice and cross entropy."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Res(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.c1, self.n1 = nn.Conv3d(i, o, 3, stride, 1, bias=False), nn.GroupNorm(8, o)
        self.c2, self.n2 = nn.Conv3d(o, o, 3, 1, 1, bias=False), nn.GroupNorm(8, o)
        self.skip = nn.Conv3d(i, o, 1, stride, bias=False) if i != o or stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.leaky_relu(self.n1(self.c1(x)), 0.01, inplace=True)
        return F.leaky_relu(self.n2(self.c2(y)) + self.skip(x), 0.01, inplace=True)


class VNet(nn.Module):
    def __init__(self, classes=4, widths=(32, 64, 128, 256, 320)):
        super().__init__()
        self.down = nn.ModuleList([Res(1, widths[0])] + [Res(a, b, 2) for a, b in zip(widths, widths[1:])])
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.mix = nn.ModuleList(Res(2 * a, a) for a in widths[:-1])
        self.heads = nn.ModuleList(nn.Conv3d(a, classes, 1) for a in widths[:3])

    def forward(self, x):
        skips = []
        for d in self.down:
            x = d(x)
            skips.append(x)
        out = []
        for i in reversed(range(len(self.up))):
            x = self.mix[i](torch.cat([self.up[i](x), skips[i]], 1))
            if i < 3:
                out.append(self.heads[i](x))
        return out[::-1]


def dice_ce(logits, target):
    p = logits.float().softmax(1)
    t = F.one_hot(target, p.shape[1]).permute(0, 4, 1, 2, 3).float()
    dims = (0, 2, 3, 4)
    d = 1 - ((2 * (p * t).sum(dims) + 1e-5) / (p.sum(dims) + t.sum(dims) + 1e-5))[1:].mean()
    return d + F.cross_entropy(logits.float(), target)


net = VNet().cuda()
opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.99, nesterov=True, weight_decay=3e-5)
for it in range(40):
    vol = torch.randn(2, 1, 96, 128, 128).cuda(non_blocking=True)
    seg = torch.randint(0, 4, (2, 96, 128, 128)).cuda(non_blocking=True)
    for g in opt.param_groups:
        g["lr"] = 0.01 * (1 - it / 40) ** 0.9
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.bfloat16):
        outs = net(vol)
    loss = 0
    for k, (o, w) in enumerate(zip(outs, (0.57, 0.29, 0.14))):
        t = seg if k == 0 else F.interpolate(seg[:, None].float(), size=o.shape[2:], mode="nearest")[:, 0].long()
        loss = loss + w * dice_ce(o, t)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 12)
    opt.step()
    if it % 10 == 0:
        print(it, round(loss.item(), 4))
