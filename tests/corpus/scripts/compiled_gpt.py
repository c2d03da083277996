import torch, torch.nn as nn, torch.nn.functional as F
torch.set_float32_matmul_precision("high")
class Block(nn.Module):
    def __init__(s, d, h): super().__init__(); s.l1, s.l2 = nn.LayerNorm(d), nn.LayerNorm(d); s.att = nn.MultiheadAttention(d, h, batch_first=True, dropout=0.0); s.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1))
    def forward(s, x, m): y = s.l1(x); x = x + s.att(y, y, y, attn_mask=m, need_weights=False, is_causal=True)[0]; return x + s.mlp(s.l2(x))
class GPT(nn.Module):
    def __init__(s, V=32768, d=768, L=12, h=12, T=512): super().__init__(); s.e, s.p = nn.Embedding(V, d), nn.Embedding(T, d); s.b = nn.ModuleList(Block(d, h) for _ in range(L)); s.f = nn.LayerNorm(d); s.o = nn.Linear(d, V, bias=False); s.register_buffer("m", nn.Transformer.generate_square_subsequent_mask(T))
    def forward(s, i):
        x = s.e(i) + s.p.weight[: i.size(1)]
        for b in s.b: x = b(x, s.m)
        return s.o(s.f(x))
net = GPT().cuda(); fast = torch.compile(net); opt = torch.optim.AdamW(net.parameters(), 3e-4, fused=True)
@torch.compile
def loss_fn(a, b): return F.cross_entropy(a.flatten(0, 1).float(), b.flatten())
for i in range(30):
    ids = torch.randint(32768, (16, 513), device="cuda")
    with torch.autocast("cuda", torch.bfloat16): loss = loss_fn(fast(ids[:, :-1]), ids[:, 1:])
    loss.backward(); opt.step(); opt.zero_grad(set_to_none=True)
    if i % 10 == 0: print(i, loss.item())
