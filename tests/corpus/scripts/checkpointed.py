import torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint
class Block(nn.Module):
    def __init__(self, d, h): super().__init__(); self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d); self.h = h; self.qkv, self.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False); self.g, self.u, self.d = nn.Linear(d, 4 * d, bias=False), nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)
    def forward(self, x): b, t, c = x.shape; q, k, v = (z.view(b, t, self.h, -1).transpose(1, 2) for z in self.qkv(self.n1(x)).chunk(3, -1)); x = x + self.o(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)); y = self.n2(x); return x + self.d(nn.functional.silu(self.g(y)) * self.u(y))
class LM(nn.Module):
    def __init__(self, v=32000, d=1024, n=12): super().__init__(); self.e = nn.Embedding(v, d); self.b = nn.ModuleList([Block(d, 16) for _ in range(n)]); self.n = nn.RMSNorm(d); self.head = nn.Linear(d, v, bias=False)
    def forward(self, x):
        x = self.e(x)
        for b in self.b: x = checkpoint(b, x, use_reentrant=False)
        return self.head(self.n(x))
model = LM().cuda(); opt = torch.optim.AdamW(model.parameters(), 3e-4, betas=(0.9, 0.95), fused=True)
for step in range(40):
    opt.zero_grad()
    for micro in range(2):
        x = torch.randint(0, 32000, (8, 1025)).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16): loss = nn.functional.cross_entropy(model(x[:, :-1]).view(-1, 32000), x[:, 1:].reshape(-1)) / 2
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step()
    if step % 10 == 0: print(step, loss.item())
