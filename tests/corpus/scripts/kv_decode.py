import torch, torch.nn as nn, torch.nn.functional as F
D, H, L, V, B = 1024, 16, 24, 32000, 8
class Block(nn.Module):
    def __init__(self): super().__init__(); self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D); self.qkv, self.o, self.up, self.down = nn.Linear(D, 3 * D), nn.Linear(D, D), nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
    def forward(self, x, cache):
        b, t, _ = x.shape; q, k, v = (z.view(b, t, H, -1).transpose(1, 2) for z in self.qkv(self.n1(x)).chunk(3, -1))
        if cache is not None: k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None); x = x + self.o(y.transpose(1, 2).reshape(b, t, D)); return x + self.down(F.gelu(self.up(self.n2(x)))), (k, v)
class GPT(nn.Module):
    def __init__(self): super().__init__(); self.emb, self.pos, self.blocks, self.norm, self.head = nn.Embedding(V, D), nn.Embedding(512, D), nn.ModuleList(Block() for _ in range(L)), nn.LayerNorm(D), nn.Linear(D, V, bias=False)
    def forward(self, ids, caches, at):
        x = self.emb(ids) + self.pos(torch.arange(at, at + ids.shape[1], device=ids.device)); new = []
        for b, c in zip(self.blocks, caches): x, c = b(x, c); new.append(c)
        return self.head(self.norm(x[:, -1])), new
model = GPT().cuda().bfloat16().eval()
@torch.no_grad()
def generate(prompt, n):
    ids, caches, at, out = prompt, [None] * L, 0, []
    for _ in range(n): logits, caches = model(ids, caches, at); at += ids.shape[1]; ids = torch.multinomial((logits.float() / 0.8).softmax(-1), 1); out.append(ids)
    return torch.cat(out, 1)
for request in range(40): answer = generate(torch.randint(0, V, (B, 128), device="cuda"), 32); print(answer.shape)
