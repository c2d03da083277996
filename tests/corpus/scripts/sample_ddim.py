import torch, torch.nn as nn
class Res(nn.Module):
    def __init__(self, i, o, t=512): super().__init__(); self.a = nn.Sequential(nn.GroupNorm(32, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1)); self.t = nn.Linear(t, o); self.b = nn.Sequential(nn.GroupNorm(32, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1)); self.s = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
    def forward(self, x, t): return self.s(x) + self.b(self.a(x) + self.t(t)[:, :, None, None])
class UNet(nn.Module):
    def __init__(self, c=128):
        super().__init__(); self.inp = nn.Conv2d(3, c, 3, padding=1); self.time = nn.Sequential(nn.Linear(1, 512), nn.SiLU(), nn.Linear(512, 512)); self.d = nn.ModuleList([Res(c, c), Res(c, 2 * c), Res(2 * c, 2 * c)]); self.down = nn.AvgPool2d(2); self.m = Res(2 * c, 2 * c); self.att = nn.MultiheadAttention(2 * c, 4, batch_first=True); self.u = nn.ModuleList([Res(4 * c, 2 * c), Res(4 * c, c), Res(2 * c, c)]); self.up = nn.Upsample(scale_factor=2); self.out = nn.Sequential(nn.GroupNorm(32, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))
    def forward(self, x, t):
        t = self.time(t[:, None] / 1000); x = self.inp(x); skips = []
        for d in self.d: x = d(x, t); skips.append(x); x = self.down(x)
        x = self.m(x, t); b, c, h, w = x.shape; z = x.flatten(2).transpose(1, 2); x = x + self.att(z, z, z, need_weights=False)[0].transpose(1, 2).view(b, c, h, w)
        for u in self.u: x = u(torch.cat([self.up(x), skips.pop()], 1), t)
        return self.out(x)
net = UNet().cuda().eval(); abar = torch.linspace(0.9999, 0.01, 1000).cuda(); images = []
with torch.no_grad():
    for batch in range(2):
        x = torch.randn(16, 3, 64, 64, device="cuda")
        for t in range(980, -1, -20): eps = net(x, torch.full((16,), float(t), device="cuda")); a, p = abar[t], abar[max(t - 20, 0)]; x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1); x = p.sqrt() * x0 + (1 - p).sqrt() * eps
        images.append(x.cpu())
print(torch.cat(images).shape)
