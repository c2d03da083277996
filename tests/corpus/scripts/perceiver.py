# Perceiver IO on images as pixels: latents attend to 50,176 positions with Fourier features, weights shared
import math
import torch, torch.nn as nn, torch.nn.functional as F

def fourier(size=224, bands=64):
    axis = torch.linspace(-1, 1, size); pos = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1); f = torch.linspace(1.0, size / 2, bands)
    x = pos.unsqueeze(-1) * f * math.pi; return torch.cat([x.sin().flatten(2), x.cos().flatten(2), pos], -1).view(size * size, -1)

class Attend(nn.Module):
    def __init__(self, q, kv, heads):
        super().__init__(); self.h = heads; self.nq, self.nk = nn.LayerNorm(q), nn.LayerNorm(kv); self.q, self.kv, self.o = nn.Linear(q, q, bias=False), nn.Linear(kv, 2 * q, bias=False), nn.Linear(q, q)
    def forward(self, x, y=None):
        x = self.nq(x); y = x if y is None else self.nk(y); s = lambda t: t.view(t.size(0), t.size(1), self.h, -1).transpose(1, 2); k, v = self.kv(y).chunk(2, -1)
        return self.o(F.scaled_dot_product_attention(s(self.q(x)), s(k), s(v)).transpose(1, 2).flatten(2))

class MLP(nn.Sequential):
    def __init__(self, d): super().__init__(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

class Perceiver(nn.Module):
    def __init__(self, latents=512, d=1024, heads=8, per=6, repeats=4, classes=1000):
        super().__init__(); self.register_buffer("pos", fourier()); c = 3 + self.pos.size(1); self.lat = nn.Parameter(torch.randn(latents, d) * 0.02); self.repeats = repeats
        self.cross, self.cmlp = Attend(d, c, 1), MLP(d); self.self_ = nn.ModuleList(nn.ModuleList([Attend(d, d, heads), MLP(d)]) for _ in range(per)); self.head = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, classes))
    def forward(self, img):
        b = img.size(0); x = torch.cat([img.flatten(2).transpose(1, 2), self.pos.expand(b, -1, -1)], -1); z = self.lat.expand(b, -1, -1)
        for _ in range(self.repeats):
            z = z + self.cross(z, x); z = z + self.cmlp(z)
            for a, m in self.self_: z = z + a(z); z = z + m(z)
        return self.head(z.mean(1))

model = Perceiver().to("cuda"); opt = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=0.1); torch.backends.cuda.matmul.allow_tf32 = True
for step in range(40):
    x, y = torch.randn(8, 3, 224, 224).to("cuda"), torch.randint(0, 1000, (8,)).to("cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16): loss = F.cross_entropy(model(x), y)
    loss.backward(); opt.step(); opt.zero_grad(set_to_none=True)
    if step % 10 == 0: print(f"step {step}: {loss.item():.3f}")
