# DeiT-style recipe: own ViT with stochastic depth and layer scale, mixup + cutmix, soft targets, bf16 autocast
import math
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def drop_path(x, p, training):
    if p == 0.0 or not training:
        return x
    keep = 1 - p
    mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
    if keep > 0.0:
        mask.div_(keep)
    return x * mask


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, dim, heads, dpr):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.g1, self.g2 = nn.Parameter(1e-4 * torch.ones(dim)), nn.Parameter(1e-4 * torch.ones(dim))
        self.dpr = dpr

    def forward(self, x):
        x = x + drop_path(self.g1 * self.attn(self.n1(x)), self.dpr, self.training)
        return x + drop_path(self.g2 * self.mlp(self.n2(x)), self.dpr, self.training)


class ViT(nn.Module):
    def __init__(self, size=224, patch=16, dim=384, depth=12, heads=6, classes=1000, dpr=0.1):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, dim) * 0.02)
        rates = [r.item() for r in torch.linspace(0, dpr, depth)]
        self.blocks = nn.Sequential(*[Block(dim, heads, r) for r in rates])
        self.norm, self.head = nn.LayerNorm(dim, eps=1e-6), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), 1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


def one_hot(y, classes, smoothing=0.1):
    off = smoothing / classes
    return torch.full((y.size(0), classes), off, device=y.device).scatter_(1, y.view(-1, 1), 1 - smoothing + off)


def mixup(x, y, classes, alpha=0.8, cut_alpha=1.0):
    if np.random.rand() < 0.5:
        lam = np.random.beta(alpha, alpha)
        x.mul_(lam).add_(x.flip(0).mul_(1 - lam))
    else:
        lam = np.random.beta(cut_alpha, cut_alpha)
        h, w = x.shape[-2:]
        cut = math.sqrt(1 - lam)
        ch, cw = int(h * cut), int(w * cut)
        cy, cx = np.random.randint(h), np.random.randint(w)
        y0, y1 = np.clip(cy - ch // 2, 0, h), np.clip(cy + ch // 2, 0, h)
        x0, x1 = np.clip(cx - cw // 2, 0, w), np.clip(cx + cw // 2, 0, w)
        x[:, :, y0:y1, x0:x1] = x.flip(0)[:, :, y0:y1, x0:x1]
        lam = 1 - (y1 - y0) * (x1 - x0) / (h * w)
    a = one_hot(y, classes)
    return x, a * lam + a.flip(0) * (1 - lam)


torch.backends.cuda.matmul.allow_tf32 = True
device = "cuda"
model = ViT().to(device)
decay = [p for p in model.parameters() if p.ndim > 1]
rest = [p for p in model.parameters() if p.ndim <= 1]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 300)
for it in range(60):
    x = torch.randn(256, 3, 224, 224).to(device, non_blocking=True)
    y = torch.randint(0, 1000, (256,)).to(device, non_blocking=True)
    x, t = mixup(x, y, 1000)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(x)
        loss = torch.sum(-t * F.log_softmax(logits, -1), -1).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    sched.step()
    if it % 20 == 0:
        print(it, loss.item())
