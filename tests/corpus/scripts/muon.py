import torch, torch.nn as nn, torch.nn.functional as F
def newton_schulz(G, steps=5):
    a, b, c = 3.4445, -4.7750, 2.0315; X = G.bfloat16()
    if G.size(0) > G.size(1): X = X.T
    X = X / (X.norm() + 1e-7)
    for _ in range(steps): A = X @ X.T; X = a * X + (b * A + c * A @ A) @ X
    return X.T if G.size(0) > G.size(1) else X
class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95, nesterov=True): super().__init__(params, dict(lr=lr, momentum=momentum, nesterov=nesterov))
    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is None: continue
                s = self.state[p]; buf = s.setdefault("momentum_buffer", torch.zeros_like(p)); buf.lerp_(p.grad, 1 - g["momentum"]); u = p.grad.lerp_(buf, g["momentum"]) if g["nesterov"] else buf
                p.add_(newton_schulz(u).to(p.dtype), alpha=-g["lr"] * max(1, p.size(0) / p.size(1)) ** 0.5)
class Block(nn.Module):
    def __init__(self, d, h): super().__init__(); self.h = h; self.qkv = nn.Linear(d, 3 * d, bias=False); self.o = nn.Linear(d, d, bias=False); self.up = nn.Linear(d, 4 * d, bias=False); self.down = nn.Linear(4 * d, d, bias=False)
    def forward(self, x):
        B, T, C = x.shape; q, k, v = self.qkv(F.rms_norm(x, (C,))).view(B, T, 3, self.h, C // self.h).permute(2, 0, 3, 1, 4); q, k = F.rms_norm(q, (C // self.h,)), F.rms_norm(k, (C // self.h,))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C)); return x + self.down(F.relu(self.up(F.rms_norm(x, (C,)))).square())
class GPT(nn.Module):
    def __init__(self, V=50304, d=768, L=12, h=6): super().__init__(); self.wte = nn.Embedding(V, d); self.h = nn.ModuleList([Block(d, h) for _ in range(L)]); self.head = nn.Linear(d, V, bias=False)
    def forward(self, i, y):
        x = self.wte(i)
        for b in self.h: x = b(x)
        return F.cross_entropy((15 * torch.tanh(self.head(F.rms_norm(x, (x.size(-1),))) / 15)).float().view(-1, 50304), y.view(-1))
m = GPT().cuda().bfloat16(); hidden = list(m.h.parameters()); opts = [torch.optim.AdamW([*m.wte.parameters(), *m.head.parameters()], lr=3e-4, fused=True), Muon(hidden)]
for step in range(40):
    x = torch.randint(0, 50304, (8, 1024), device="cuda", dtype=torch.int32); y = torch.roll(x, -1, 1).long(); loss = m(x, y); loss.backward()
    for o in opts: o.step()
    m.zero_grad(set_to_none=True)
    if step % 5 == 0: print(step, loss.item())
