"""A retentive network: decay in place of softmax, chunks computed in parallel, the state carried between them."""
import torch
import torch.nn as nn
import torch.nn.functional as F

D, H, LAYERS, V, T, CHUNK = 1024, 8, 16, 50304, 2048, 256


class Retention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkvg, self.out = nn.Linear(D, 4 * D, bias=False), nn.Linear(D, D, bias=False)
        self.norm = nn.GroupNorm(H, D)
        gamma = 1 - 2.0 ** (-5 - torch.arange(H).float())
        n = torch.arange(CHUNK)
        decay = gamma[:, None, None] ** (n[:, None] - n[None]).clamp(min=0) * (n[:, None] >= n[None])
        self.register_buffer("decay", decay)
        self.register_buffer("inner", (gamma[:, None] ** (n + 1)).unsqueeze(-1))
        self.register_buffer("outer", (gamma[:, None] ** (CHUNK - 1 - n)).unsqueeze(-1))
        self.register_buffer("cross", (gamma**CHUNK).view(H, 1, 1))

    def forward(self, x):
        b = x.size(0)
        q, k, v, g = self.qkvg(x).chunk(4, -1)
        q, k, v = (t.view(b, T // CHUNK, CHUNK, H, D // H).permute(1, 0, 3, 2, 4) for t in (q, k, v))
        k = k * (D // H) ** -0.5
        state = torch.zeros(b, H, D // H, D // H, device=x.device, dtype=q.dtype)
        outs = []
        for i in range(T // CHUNK):
            scores = q[i] @ k[i].transpose(-1, -2) * self.decay
            outs.append(scores @ v[i] + q[i] @ state * self.inner)
            state = state * self.cross + k[i].transpose(-1, -2) @ (v[i] * self.outer)
        y = torch.stack(outs, 1).transpose(2, 3).reshape(b * T, D)
        return self.out(F.silu(g) * self.norm(y).view(b, T, D))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2, self.r = nn.LayerNorm(D), nn.LayerNorm(D), Retention()
        self.ffn = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x):
        x = x + self.r(self.n1(x))
        return x + self.ffn(self.n2(x))


class RetNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.blocks, self.norm = nn.Embedding(V, D), nn.Sequential(*[Block() for _ in range(LAYERS)]), nn.LayerNorm(D)

    def forward(self, ids):
        return F.linear(self.norm(self.blocks(self.embed(ids))), self.embed.weight)


model = RetNet().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.98), weight_decay=0.05, foreach=False)
for step in range(40):
    ids = torch.randint(0, V, (4, T + 1), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(ids[:, :-1]).float().view(-1, V), ids[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    opt.step()
    if step % 10 == 0:
        print(step, round(loss.item(), 3))
