import copy, math, torch, torch.nn as nn, torch.nn.functional as F
from dataclasses import dataclass
@dataclass
class Config:
    image: int = 64; width: int = 128; mults: tuple = (1, 2, 2, 4); batch: int = 32; T: int = 1000; lr: float = 1e-4; ema: float = 0.9999; steps: int = 60
cfg = Config(); device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
def temb(t, dim):
    f = torch.exp(-math.log(10000) * torch.arange(dim // 2, device=t.device) / (dim // 2)); a = t[:, None].float() * f[None]
    return torch.cat([a.sin(), a.cos()], -1)
class Res(nn.Module):
    def __init__(self, i, o, e, drop=0.1):
        super().__init__(); self.n1 = nn.GroupNorm(32, i); self.c1 = nn.Conv2d(i, o, 3, padding=1); self.t = nn.Linear(e, o)
        self.n2 = nn.GroupNorm(32, o); self.d = nn.Dropout(drop); self.c2 = nn.Conv2d(o, o, 3, padding=1); self.s = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.t(F.silu(e))[:, :, None, None]
        return self.s(x) + self.c2(self.d(F.silu(self.n2(h))))
class Attn(nn.Module):
    def __init__(self, c, heads=4): super().__init__(); self.n = nn.GroupNorm(32, c); self.qkv = nn.Conv2d(c, 3 * c, 1); self.o = nn.Conv2d(c, c, 1); self.h = heads
    def forward(self, x):
        b, c, h, w = x.shape; q, k, v = self.qkv(self.n(x)).reshape(b, 3, self.h, c // self.h, h * w).transpose(-1, -2).unbind(1)
        o = F.scaled_dot_product_attention(q, k, v); return x + self.o(o.transpose(-1, -2).reshape(b, c, h, w))
class UNet(nn.Module):
    def __init__(self, c):
        super().__init__(); e = 4 * c.width; self.w = c.width; self.time = nn.Sequential(nn.Linear(c.width, e), nn.SiLU(), nn.Linear(e, e))
        self.inp = nn.Conv2d(3, c.width, 3, padding=1); chans = [c.width]; cur = c.width; self.down = nn.ModuleList(); size = c.image
        for k, m in enumerate(c.mults):
            for _ in range(2):
                self.down.append(nn.ModuleList([Res(cur, m * c.width, e), Attn(m * c.width) if size == 16 else nn.Identity()])); cur = m * c.width; chans.append(cur)
            if k < len(c.mults) - 1: self.down.append(nn.Conv2d(cur, cur, 3, 2, 1)); chans.append(cur); size //= 2
        self.mid = nn.ModuleList([Res(cur, cur, e), Attn(cur), Res(cur, cur, e)]); self.up = nn.ModuleList()
        for k, m in reversed(list(enumerate(c.mults))):
            for _ in range(3):
                self.up.append(nn.ModuleList([Res(cur + chans.pop(), m * c.width, e), Attn(m * c.width) if size == 16 else nn.Identity()])); cur = m * c.width
            if k: self.up.append(nn.Conv2d(cur, cur, 3, padding=1)); size *= 2
        self.out = nn.Sequential(nn.GroupNorm(32, cur), nn.SiLU(), nn.Conv2d(cur, 3, 3, padding=1))
    def forward(self, x, t):
        e = self.time(temb(t, self.w)); x = self.inp(x); hs = [x]
        for l in self.down:
            x = l(x) if isinstance(l, nn.Conv2d) else l[1](l[0](x, e)); hs.append(x)
        x = self.mid[2](self.mid[1](self.mid[0](x, e)), e)
        for l in self.up:
            x = l(F.interpolate(x, scale_factor=2)) if isinstance(l, nn.Conv2d) else l[1](l[0](torch.cat([x, hs.pop()], 1), e))
        return self.out(x)
model = UNet(cfg).to(device); ema = copy.deepcopy(model).eval().requires_grad_(False)
beta = torch.linspace(1e-4, 0.02, cfg.T, device=device); abar = torch.cumprod(1 - beta, 0)
opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr); sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1, s / 5000))
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters")
for step in range(cfg.steps):
    x0 = torch.randn(cfg.batch, 3, cfg.image, cfg.image).to(device, non_blocking=True); t = torch.randint(0, cfg.T, (cfg.batch,), device=device); noise = torch.randn_like(x0)
    a = abar[t][:, None, None, None]; xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
    with torch.autocast("cuda", dtype=torch.bfloat16): loss = F.mse_loss(model(xt, t), noise)
    opt.zero_grad(); loss.backward(); gn = nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step(); sched.step()
    with torch.no_grad():
        for pe, pm in zip(ema.parameters(), model.parameters()): pe.mul_(cfg.ema).add_(pm, alpha=1 - cfg.ema)
    if step % 10 == 0: print(f"step {step:05d} loss {loss.item():.4f} |g| {gn:.3f} lr {sched.get_last_lr()[0]:.2e}")
