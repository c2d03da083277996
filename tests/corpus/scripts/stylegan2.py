# StyleGAN2 at 128 px: modulated convolutions as grouped ones, R1 on every step, averaged generator
import copy, math
import torch, torch.nn as nn, torch.nn.functional as F
from torch import autograd

class EqLinear(nn.Module):
    def __init__(self, i, o, bias=0.0, lr=1.0): super().__init__(); self.w = nn.Parameter(torch.randn(o, i) / lr); self.b = nn.Parameter(torch.full((o,), float(bias))); self.s = lr / math.sqrt(i); self.lr = lr
    def forward(self, x): return F.linear(x, self.w * self.s, self.b * self.lr)

class EqConv(nn.Module):
    def __init__(self, i, o, k, s=1, p=0): super().__init__(); self.w = nn.Parameter(torch.randn(o, i, k, k)); self.b = nn.Parameter(torch.zeros(o)); self.c = 1 / math.sqrt(i * k * k); self.s, self.p = s, p
    def forward(self, x): return F.conv2d(x, self.w * self.c, self.b, self.s, self.p)

class ModConv(nn.Module):
    def __init__(self, i, o, k, style, demod=True): super().__init__(); self.w = nn.Parameter(torch.randn(1, o, i, k, k)); self.mod = EqLinear(style, i, 1.0); self.demod, self.k, self.c = demod, k, 1 / math.sqrt(i * k * k)
    def forward(self, x, s):
        b, c, h, w = x.shape
        weight = self.c * self.w * self.mod(s).view(b, 1, c, 1, 1)
        if self.demod: weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4]) + 1e-8).view(b, -1, 1, 1, 1)
        out = F.conv2d(x.reshape(1, b * c, h, w), weight.view(-1, c, self.k, self.k), padding=self.k // 2, groups=b)
        return out.view(b, -1, h, w)

class Styled(nn.Module):
    def __init__(self, i, o, style): super().__init__(); self.conv = ModConv(i, o, 3, style); self.noise = nn.Parameter(torch.zeros(1)); self.bias = nn.Parameter(torch.zeros(1, o, 1, 1))
    def forward(self, x, s): x = self.conv(x, s); return F.leaky_relu(x + self.noise * torch.randn(x.size(0), 1, *x.shape[2:], device=x.device) + self.bias, 0.2) * math.sqrt(2)

class Generator(nn.Module):
    def __init__(self, style=512, chans=(512, 512, 512, 512, 256, 128)):
        super().__init__(); self.map = nn.Sequential(*[m for _ in range(8) for m in (EqLinear(style, style, lr=0.01), nn.LeakyReLU(0.2))]); self.start = nn.Parameter(torch.randn(1, chans[0], 4, 4))
        self.a, self.b, self.rgb, c = nn.ModuleList(), nn.ModuleList(), nn.ModuleList(), chans[0]
        for o in chans: self.a.append(Styled(c, o, style)); self.b.append(Styled(o, o, style)); self.rgb.append(ModConv(o, 3, 1, style, demod=False)); c = o
    def forward(self, z):
        s = self.map(F.normalize(z, dim=1) * math.sqrt(z.size(1))); x = self.start.repeat(z.size(0), 1, 1, 1); img = None
        for i, (a, b, r) in enumerate(zip(self.a, self.b, self.rgb)):
            if i: x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = b(a(x, s), s); y = r(x, s); img = y if img is None else y + F.interpolate(img, scale_factor=2, mode="bilinear", align_corners=False)
        return img

class Res(nn.Module):
    def __init__(self, i, o): super().__init__(); self.a, self.b, self.s = EqConv(i, i, 3, 1, 1), EqConv(i, o, 3, 1, 1), EqConv(i, o, 1)
    def forward(self, x): y = F.avg_pool2d(F.leaky_relu(self.b(F.leaky_relu(self.a(x), 0.2)), 0.2), 2); return (y + self.s(F.avg_pool2d(x, 2))) / math.sqrt(2)

class Discriminator(nn.Module):
    def __init__(self, chans=(128, 256, 512, 512, 512, 512)): super().__init__(); self.inp = EqConv(3, chans[0], 1); self.res = nn.Sequential(*[Res(i, o) for i, o in zip(chans, chans[1:])]); self.last = EqConv(chans[-1] + 1, chans[-1], 3, 1, 1); self.out = nn.Sequential(EqLinear(chans[-1] * 16, chans[-1]), nn.LeakyReLU(0.2), EqLinear(chans[-1], 1))
    def forward(self, x):
        x = self.res(self.inp(x)); b, c, h, w = x.shape; g = min(b, 4)
        std = torch.sqrt(x.view(g, -1, 1, c, h, w).var(0, unbiased=False) + 1e-8).mean([2, 3, 4], keepdim=True).squeeze(2).repeat(g, 1, h, w)
        return self.out(F.leaky_relu(self.last(torch.cat([x, std], 1)), 0.2).flatten(1))

device = "cuda"; G, D = Generator().to(device), Discriminator().to(device); ema = copy.deepcopy(G).eval().requires_grad_(False)
go, do = torch.optim.Adam(G.parameters(), 2e-3, (0.0, 0.99)), torch.optim.Adam(D.parameters(), 2e-3, (0.0, 0.99)); B = 16
for step in range(40):
    real = torch.randn(B, 3, 128, 128).to(device).requires_grad_(True)
    with torch.no_grad(): fake = G(torch.randn(B, 512, device=device))
    d_real = D(real); loss_d = F.softplus(D(fake)).mean() + F.softplus(-d_real).mean()
    grad, = autograd.grad(d_real.sum(), real, create_graph=True); r1 = grad.pow(2).flatten(1).sum(1).mean()
    do.zero_grad(); (loss_d + 5.0 * r1).backward(); do.step()
    D.requires_grad_(False); loss_g = F.softplus(-D(G(torch.randn(B, 512, device=device)))).mean(); go.zero_grad(); loss_g.backward(); go.step(); D.requires_grad_(True)
    with torch.no_grad():
        for a, b in zip(ema.parameters(), G.parameters()): a.lerp_(b, 1 - 0.999)
    if step % 10 == 0: print(step, loss_d.item(), loss_g.item(), r1.item())
