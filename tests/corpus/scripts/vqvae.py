import torch, torch.nn as nn, torch.nn.functional as F
class VQ(nn.Module):
    def __init__(self, k=512, d=64, decay=0.99, beta=0.25): super().__init__(); self.k, self.d, self.decay, self.beta = k, d, decay, beta; self.register_buffer("w", torch.randn(k, d)); self.register_buffer("n", torch.zeros(k)); self.register_buffer("avg", self.w.clone())
    def forward(self, z):
        z = z.permute(0, 2, 3, 1).contiguous(); flat = z.view(-1, self.d); dist = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.w.t() + self.w.pow(2).sum(1); idx = dist.argmin(1); one = F.one_hot(idx, self.k).type(flat.dtype); q = (one @ self.w).view(z.shape)
        if self.training:
            with torch.no_grad(): self.n.mul_(self.decay).add_(one.sum(0), alpha=1 - self.decay); self.avg.mul_(self.decay).add_(one.t() @ flat, alpha=1 - self.decay); n = self.n.sum(); c = (self.n + 1e-5) / (n + self.k * 1e-5) * n; self.w.copy_(self.avg / c.unsqueeze(1))
        loss = self.beta * F.mse_loss(q.detach(), z); q = z + (q - z).detach(); p = one.mean(0); return q.permute(0, 3, 1, 2).contiguous(), loss, torch.exp(-(p * (p + 1e-10).log()).sum())
class Res(nn.Module):
    def __init__(self, c, h): super().__init__(); self.b = nn.Sequential(nn.ReLU(True), nn.Conv2d(c, h, 3, 1, 1, bias=False), nn.ReLU(True), nn.Conv2d(h, c, 1, bias=False))
    def forward(self, x): return x + self.b(x)
class Model(nn.Module):
    def __init__(self, h=128, d=64): super().__init__(); self.e = nn.Sequential(nn.Conv2d(3, h // 2, 4, 2, 1), nn.ReLU(), nn.Conv2d(h // 2, h, 4, 2, 1), nn.ReLU(), nn.Conv2d(h, h, 3, 1, 1), Res(h, 32), Res(h, 32), nn.ReLU(), nn.Conv2d(h, d, 1)); self.q = VQ(d=d); self.dec = nn.Sequential(nn.Conv2d(d, h, 3, 1, 1), Res(h, 32), Res(h, 32), nn.ReLU(), nn.ConvTranspose2d(h, h // 2, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(h // 2, 3, 4, 2, 1))
    def forward(self, x): q, l, p = self.q(self.e(x)); return l, self.dec(q), p
net = Model().to("cuda"); opt = torch.optim.Adam(net.parameters(), lr=1e-3, amsgrad=False); net.train(); err, perp = [], []
for i in range(60):
    x = torch.rand(64, 3, 128, 128).to("cuda") - 0.5; opt.zero_grad(); vq, rec, p = net(x); re = F.mse_loss(rec, x) / 0.06; (re + vq).backward(); opt.step(); err.append(re.item()); perp.append(p.item())
    if (i + 1) % 20 == 0: print("%d iterations, recon_error: %.3f, perplexity: %.3f" % (i + 1, sum(err[-20:]) / 20, sum(perp[-20:]) / 20))
