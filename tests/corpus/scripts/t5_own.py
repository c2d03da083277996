"""An encoder-decoder in T5's manner: RMSNorm, relative position buckets, gated GELU, label smoothing, Adafactor."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

D, HEADS, KV, FF, LAYERS, V = 768, 12, 64, 2048, 12, 32128


class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + 1e-6)
        return self.weight * x


class Bias(nn.Module):
    def __init__(self, both, buckets=32, far=128):
        super().__init__()
        self.both, self.buckets, self.far, self.table = both, buckets, far, nn.Embedding(buckets, HEADS)

    def forward(self, q, k):
        at = torch.arange(k, device=self.table.weight.device)[None] - torch.arange(q, device=self.table.weight.device)[:, None]
        n, found = self.buckets, 0
        if self.both:
            n //= 2
            found = (at > 0).long() * n
            at = at.abs()
        else:
            at = -torch.min(at, torch.zeros_like(at))
        exact = n // 2
        large = exact + (torch.log(at.float() / exact) / math.log(self.far / exact) * (n - exact)).long()
        large = torch.min(large, torch.full_like(large, n - 1))
        return self.table(found + torch.where(at < exact, at, large)).permute(2, 0, 1).unsqueeze(0)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(*s, bias=False) for s in ((D, HEADS * KV),) * 3 + ((HEADS * KV, D),))

    def forward(self, x, memory=None, bias=None):
        memory = x if memory is None else memory
        split = lambda t: t.view(t.size(0), -1, HEADS, KV).transpose(1, 2)
        q, k, v = split(self.q(x)), split(self.k(memory)), split(self.v(memory))
        scores = torch.matmul(q, k.transpose(3, 2))
        if bias is not None:
            scores += bias
        w = F.dropout(F.softmax(scores.float(), dim=-1).type_as(scores), 0.1, self.training)
        return self.o(torch.matmul(w, v).transpose(1, 2).contiguous().view(x.size(0), -1, HEADS * KV))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.o = nn.Linear(D, FF, bias=False), nn.Linear(D, FF, bias=False), nn.Linear(FF, D, bias=False)

    def forward(self, x):
        return self.o(F.dropout(F.gelu(self.a(x), approximate="tanh") * self.b(x), 0.1, self.training))


class Layer(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.self_, self.cross, self.ff = Attention(), Attention() if cross else None, FeedForward()
        self.n1, self.n2, self.n3 = RMSNorm(D), RMSNorm(D), RMSNorm(D)

    def forward(self, x, bias, memory=None):
        x = x + F.dropout(self.self_(self.n1(x), bias=bias), 0.1, self.training)
        if self.cross is not None:
            x = x + F.dropout(self.cross(self.n2(x), memory), 0.1, self.training)
        return x + F.dropout(self.ff(self.n3(x)), 0.1, self.training)


class T5(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.eb, self.db = nn.Embedding(V, D), Bias(True), Bias(False)
        self.enc, self.dec = (nn.ModuleList(Layer(c) for _ in range(LAYERS)) for c in (False, True))
        self.ne, self.nd, self.head = RMSNorm(D), RMSNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, src, trg):
        x, bias = self.embed(src), self.eb(src.size(1), src.size(1))
        for layer in self.enc:
            x = layer(x, bias)
        memory, y = self.ne(x), self.embed(trg)
        causal = torch.full((trg.size(1), trg.size(1)), float("-inf"), device=trg.device).triu(1)
        bias = self.db(trg.size(1), trg.size(1)) + causal
        for layer in self.dec:
            y = layer(y, bias, memory)
        return self.head(self.nd(y))


model = T5().cuda()
opt = torch.optim.Adafactor(model.parameters(), lr=1e-2)
for step in range(40):
    src, trg = torch.randint(2, V, (16, 512)).cuda(), torch.randint(2, V, (16, 128)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(src, F.pad(trg, (1, -1)))
        loss = F.cross_entropy(logits.view(-1, V), trg.view(-1), label_smoothing=0.1)
    loss.backward()
    opt.step()
    opt.zero_grad()
    if step % 10 == 0:
        print(step, loss.item())
