import copy, math, torch, torch.nn as nn, torch.nn.functional as F
def embed(t, d): f = torch.exp(-math.log(10000) * torch.arange(d // 2, device=t.device) / (d // 2)); a = t[:, None].float() * f; return torch.cat([a.cos(), a.sin()], -1)
class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__(); self.h = h; self.n1, self.n2 = nn.LayerNorm(d, elementwise_affine=False), nn.LayerNorm(d, elementwise_affine=False); self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d); self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d)); self.mod = nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))
    def forward(self, x, c):
        a, b, g, e, f, k = self.mod(c)[:, None].chunk(6, -1); B, N, D = x.shape
        q, kk, v = self.qkv(self.n1(x) * (1 + b) + a).view(B, N, 3, self.h, D // self.h).permute(2, 0, 3, 1, 4); x = x + g * self.o(F.scaled_dot_product_attention(q, kk, v).transpose(1, 2).reshape(B, N, D)); return x + k * self.mlp(self.n2(x) * (1 + f) + e)
class DiT(nn.Module):
    def __init__(self, d=384, depth=12, h=6, p=2, c=4, size=32):
        super().__init__(); self.patch = nn.Conv2d(c, d, p, p); self.pos = nn.Parameter(torch.randn(1, (size // p) ** 2, d) * 0.02); self.time = nn.Sequential(nn.Linear(256, d), nn.SiLU(), nn.Linear(d, d)); self.label = nn.Embedding(1001, d); self.blocks = nn.ModuleList([Block(d, h) for _ in range(depth)]); self.out = nn.Linear(d, p * p * c); self.p, self.c = p, c
    def forward(self, x, t, y):
        B, C, H, W = x.shape; z = self.patch(x).flatten(2).transpose(1, 2) + self.pos; c = self.time(embed(t, 256)) + self.label(y)
        for b in self.blocks: z = b(z, c)
        return self.out(z).view(B, H // self.p, W // self.p, self.p, self.p, self.c).permute(0, 5, 1, 3, 2, 4).reshape(B, C, H, W)
net = DiT().cuda(); ema = copy.deepcopy(net).requires_grad_(False); opt = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0)
for i in range(45):
    x, y, t = torch.randn(64, 4, 32, 32).cuda(), torch.randint(0, 1000, (64,)).cuda(), torch.randint(0, 1000, (64,)).cuda(); noise = torch.randn_like(x); a = torch.cos(t / 1000 * math.pi / 2)[:, None, None, None]
    with torch.autocast("cuda", dtype=torch.bfloat16): loss = F.mse_loss(net(a * x + (1 - a ** 2).sqrt() * noise, t, y), noise)
    opt.zero_grad(); loss.backward(); opt.step(); torch._foreach_lerp_(list(ema.parameters()), list(net.parameters()), 1e-4)
    if i % 10 == 0: print(i, f"{loss.item():.4f}")
