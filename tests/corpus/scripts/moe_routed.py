"""A transformer with routed experts: every expert gets the tokens that chose it, by index, with a balance loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MoE(nn.Module):
    def __init__(self, d=1024, ff=2816, experts=8, top=2):
        super().__init__()
        self.gate, self.top, self.n = nn.Linear(d, experts, bias=False), top, experts
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(d, ff, bias=False), nn.SiLU(), nn.Linear(ff, d, bias=False)) for _ in range(experts))
        self.aux = 0.0

    def forward(self, x):
        shape = x.shape
        x = x.view(-1, shape[-1])
        probs = self.gate(x).softmax(-1, dtype=torch.float)
        weight, chosen = probs.topk(self.top, dim=-1)
        weight = (weight / weight.sum(-1, keepdim=True)).to(x.dtype)
        load = F.one_hot(chosen, self.n).float().mean((0, 1))
        self.aux = self.n * (load * probs.mean(0)).sum()
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            row, which = torch.where(chosen == i)
            out.index_add_(0, row, expert(x[row]) * weight[row, which, None])
        return out.view(shape)


class Block(nn.Module):
    def __init__(self, d=1024, heads=16):
        super().__init__()
        self.n1, self.n2, self.h = nn.RMSNorm(d), nn.RMSNorm(d), heads
        self.qkv, self.o, self.moe = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False), MoE(d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.moe(self.n2(x))


class LM(nn.Module):
    def __init__(self, v=32000, d=1024, layers=8):
        super().__init__()
        self.e, self.blocks, self.n, self.head = nn.Embedding(v, d), nn.ModuleList(Block(d) for _ in range(layers)), nn.RMSNorm(d), nn.Linear(d, v, bias=False)

    def forward(self, ids):
        x = self.e(ids)
        for b in self.blocks:
            x = b(x)
        return self.head(self.n(x)), sum(b.moe.aux for b in self.blocks) / len(self.blocks)


model = LM().to("cuda", torch.bfloat16)
opt = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=0.1)
for step in range(40):
    ids = torch.randint(0, 32000, (8, 1025)).cuda()
    logits, aux = model(ids[:, :-1])
    loss = F.cross_entropy(logits.view(-1, 32000), ids[:, 1:].reshape(-1)) + 0.01 * aux
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad()
    if step % 10 == 0:
        print(step, loss.item(), float(aux))
