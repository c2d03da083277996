"""A residual GAN with spectral norm, class projection, hinge loss, R1 penalty every fourth step and EMA of the generator."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import spectral_norm as sn


class CBN(nn.Module):
    def __init__(self, c, classes):
        super().__init__()
        self.bn, self.embed = nn.BatchNorm2d(c, affine=False), nn.Embedding(classes, 2 * c)
        self.embed.weight.data[:, :c].fill_(1.0)
        self.embed.weight.data[:, c:].zero_()

    def forward(self, x, y):
        g, b = self.embed(y).chunk(2, 1)
        return g[..., None, None] * self.bn(x) + b[..., None, None]


class GBlock(nn.Module):
    def __init__(self, i, o, classes):
        super().__init__()
        self.b1, self.b2 = CBN(i, classes), CBN(o, classes)
        self.c1, self.c2, self.sc = nn.Conv2d(i, o, 3, 1, 1), nn.Conv2d(o, o, 3, 1, 1), nn.Conv2d(i, o, 1)

    def forward(self, x, y):
        h = self.c1(F.interpolate(F.relu(self.b1(x, y)), scale_factor=2))
        return self.c2(F.relu(self.b2(h, y))) + self.sc(F.interpolate(x, scale_factor=2))


class Generator(nn.Module):
    def __init__(self, z=128, c=256, classes=10):
        super().__init__()
        self.fc, self.c = nn.Linear(z, 4 * 4 * c), c
        self.blocks = nn.ModuleList(GBlock(c, c, classes) for _ in range(4))
        self.bn, self.out = nn.BatchNorm2d(c), nn.Conv2d(c, 3, 3, 1, 1)

    def forward(self, z, y):
        x = self.fc(z).view(-1, self.c, 4, 4)
        for b in self.blocks:
            x = b(x, y)
        return torch.tanh(self.out(F.relu(self.bn(x))))


class DBlock(nn.Module):
    def __init__(self, i, o, down=True, first=False):
        super().__init__()
        self.c1, self.c2, self.sc = sn(nn.Conv2d(i, o, 3, 1, 1)), sn(nn.Conv2d(o, o, 3, 1, 1)), sn(nn.Conv2d(i, o, 1))
        self.down, self.first = down, first

    def forward(self, x):
        h = self.c2(F.relu(self.c1(x if self.first else F.relu(x))))
        s = self.sc(x)
        return F.avg_pool2d(h, 2) + F.avg_pool2d(s, 2) if self.down else h + s


class Discriminator(nn.Module):
    def __init__(self, c=128, classes=10):
        super().__init__()
        self.body = nn.Sequential(DBlock(3, c, first=True), DBlock(c, c), DBlock(c, c), DBlock(c, c, down=False))
        self.fc, self.embed = sn(nn.Linear(c, 1)), sn(nn.Embedding(classes, c))

    def forward(self, x, y):
        h = F.relu(self.body(x)).sum((2, 3))
        return self.fc(h).squeeze(1) + (self.embed(y) * h).sum(1)


G, D = Generator().cuda(), Discriminator().cuda()
ema = copy.deepcopy(G).eval().requires_grad_(False)
og = torch.optim.Adam(G.parameters(), 2e-4, betas=(0.0, 0.9))
od = torch.optim.Adam(D.parameters(), 2e-4, betas=(0.0, 0.9))
for step in range(60):
    real, y = (torch.rand(64, 3, 64, 64) * 2 - 1).cuda(), torch.randint(0, 10, (64,)).cuda()
    real.requires_grad_(True)
    fake = G(torch.randn(64, 128, device="cuda"), y).detach()
    dr, df = D(real, y), D(fake, y)
    loss_d = F.relu(1 - dr).mean() + F.relu(1 + df).mean()
    grad = torch.autograd.grad(dr.sum(), real, create_graph=True)[0]
    loss_d = loss_d + 5 * grad.pow(2).sum((1, 2, 3)).mean()
    od.zero_grad()
    loss_d.backward()
    od.step()
    yg = torch.randint(0, 10, (64,), device="cuda")
    loss_g = -D(G(torch.randn(64, 128, device="cuda"), yg), yg).mean()
    og.zero_grad()
    loss_g.backward()
    og.step()
    with torch.no_grad():
        for p, q in zip(ema.parameters(), G.parameters()):
            p.lerp_(q, 0.001)
    if step % 20 == 0:
        print(step, loss_d.item(), loss_g.item())
