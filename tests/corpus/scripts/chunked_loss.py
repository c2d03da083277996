"""A small Llama written by hand, with rotary embeddings in complex numbers and a loss that never holds all logits."""
import math, torch, torch.nn as nn, torch.nn.functional as F
class ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, w, y, chunk):
        n = h.size(0); gh = torch.empty_like(h); gw = torch.zeros_like(w, dtype=torch.float32); total = torch.zeros((), device=h.device)
        for a in range(0, n, chunk):
            hs, ys = h[a:a + chunk], y[a:a + chunk]; logits = (hs @ w.t()).float(); lse = logits.logsumexp(-1); total += (lse - logits.gather(1, ys[:, None]).squeeze(1)).sum()
            p = (logits - lse[:, None]).exp_(); p.scatter_add_(1, ys[:, None], torch.full((len(ys), 1), -1.0, device=h.device)); p = p.div_(n).to(h.dtype); gh[a:a + chunk] = p @ w; gw += (p.t() @ hs).float()
        ctx.save_for_backward(gh, gw.to(w.dtype)); return total / n
    @staticmethod
    def backward(ctx, g): gh, gw = ctx.saved_tensors; return gh * g, gw * g, None, None
class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-5): super().__init__(); self.eps, self.weight = eps, nn.Parameter(torch.ones(d))
    def forward(self, x): return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight
def freqs_cis(dim, end, theta=10000.0): f = 1.0 / theta ** (torch.arange(0, dim, 2).float() / dim); return torch.polar(torch.ones(end, dim // 2), torch.outer(torch.arange(end).float(), f))
def rotate(x, f): z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)); return torch.view_as_real(z * f[None, :, None]).flatten(3).type_as(x)
class Block(nn.Module):
    def __init__(self, d, h, kv, ff):
        super().__init__(); self.h, self.kv, self.hd = h, kv, d // h; self.wq = nn.Linear(d, d, bias=False); self.wk = nn.Linear(d, kv * self.hd, bias=False); self.wv = nn.Linear(d, kv * self.hd, bias=False); self.wo = nn.Linear(d, d, bias=False)
        self.w1, self.w3, self.w2 = nn.Linear(d, ff, bias=False), nn.Linear(d, ff, bias=False), nn.Linear(ff, d, bias=False); self.n1, self.n2 = RMSNorm(d), RMSNorm(d)
    def forward(self, x, f):
        b, t, d = x.shape; y = self.n1(x); q, k, v = self.wq(y).view(b, t, self.h, -1), self.wk(y).view(b, t, self.kv, -1), self.wv(y).view(b, t, self.kv, -1); q, k = rotate(q, f), rotate(k, f)
        k, v = (z[:, :, :, None].expand(b, t, self.kv, self.h // self.kv, self.hd).reshape(b, t, self.h, self.hd) for z in (k, v)); o = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.wo(o.transpose(1, 2).reshape(b, t, d)); y = self.n2(x); return x + self.w2(F.silu(self.w1(y)) * self.w3(y))
class Llama(nn.Module):
    def __init__(self, V=32000, d=1024, L=12, h=16, kv=4, ff=2816, T=1024): super().__init__(); self.emb = nn.Embedding(V, d); self.blocks = nn.ModuleList(Block(d, h, kv, ff) for _ in range(L)); self.norm = RMSNorm(d); self.head = nn.Linear(d, V, bias=False); self.f = freqs_cis(d // h, T)
    def forward(self, x, y):
        self.f = self.f.to(x.device); h = self.emb(x)
        for b in self.blocks: h = b(h, self.f[: x.size(1)])
        return ChunkedCrossEntropy.apply(self.norm(h).flatten(0, 1), self.head.weight, y.flatten(), 2048)
model = Llama().to("cuda", torch.bfloat16); opt = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True); data = torch.randint(0, 32000, (200_000,))
for it in range(40):
    ix = torch.randint(len(data) - 1025, (8,)); x = torch.stack([data[i:i + 1024] for i in ix]).pin_memory().to("cuda", non_blocking=True); y = torch.stack([data[i + 1:i + 1025] for i in ix]).pin_memory().to("cuda", non_blocking=True)
    lr = 3e-4 * 0.5 * (1 + math.cos(math.pi * it / 40)); [g.update(lr=lr) for g in opt.param_groups]; loss = model(x, y); loss.backward(); norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step(); opt.zero_grad(); print(f"{it} {loss.item():.4f} {norm.item():.2f}")
