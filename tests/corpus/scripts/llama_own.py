import math, torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
D, L, H, V, T, B = 1024, 16, 16, 32000, 1024, 4
class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-5): super().__init__(); self.weight, self.eps = nn.Parameter(torch.ones(d)), eps
    def forward(self, x): f = x.float(); return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight
def rope(x, cos, sin): a, b = x.chunk(2, -1); return x * cos + torch.cat((-b, a), -1) * sin
class Block(nn.Module):
    def __init__(self): super().__init__(); self.n1, self.n2 = RMSNorm(D), RMSNorm(D); self.qkv, self.o = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False); h = 2816; self.w1, self.w2, self.w3 = nn.Linear(D, h, bias=False), nn.Linear(h, D, bias=False), nn.Linear(D, h, bias=False)
    def forward(self, x, cos, sin):
        b, t, _ = x.shape; q, k, v = (z.view(b, t, H, D // H).transpose(1, 2) for z in self.qkv(self.n1(x)).split(D, -1)); y = F.scaled_dot_product_attention(rope(q, cos, sin), rope(k, cos, sin), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, D)); h = self.n2(x); return x + self.w2(F.silu(self.w1(h)) * self.w3(h))
class Llama(nn.Module):
    def __init__(self):
        super().__init__(); self.emb = nn.Embedding(V, D); self.blocks = nn.ModuleList(Block() for _ in range(L)); self.norm = RMSNorm(D); self.head = nn.Linear(D, V, bias=False); f = torch.outer(torch.arange(T).float(), 10000 ** (-torch.arange(0, D // H, 2).float() / (D // H))); self.register_buffer("cos", torch.cat((f, f), -1).cos(), persistent=False); self.register_buffer("sin", torch.cat((f, f), -1).sin(), persistent=False)
    def forward(self, x):
        h = self.emb(x)
        for b in self.blocks: h = checkpoint(b, h, self.cos.to(h.dtype), self.sin.to(h.dtype), use_reentrant=False)
        return self.head(self.norm(h))
model = Llama().to("cuda", torch.bfloat16); opt = torch.optim.AdamW(model.parameters(), 3e-4, betas=(0.9, 0.95), weight_decay=0.1)
for step in range(40):
    x = torch.randint(0, V, (B, T + 1), device="cuda"); loss = F.cross_entropy(model(x[:, :-1]).float().view(-1, V), x[:, 1:].reshape(-1)); loss.backward(); norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step(); opt.zero_grad()
    if step % 10 == 0: print(f"{step} {loss.item():.3f} {norm.item():.2f}")
