"""Divided space-time attention over clips, in bfloat16 with gradient accumulation."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.qkv, self.out = h, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, d=768, h=12):
        super().__init__()
        self.nt, self.ns, self.nm = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.time, self.space, self.fc = Attention(d, h), Attention(d, h), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, n, d = x.shape
        y = x.transpose(1, 2).reshape(b * n, t, d)
        x = x + self.fc(self.time(self.nt(y))).view(b, n, t, d).transpose(1, 2)
        y = x.reshape(b * t, n, d)
        x = x + self.space(self.ns(y)).view(b, t, n, d)
        return x + self.mlp(self.nm(x))


class TimeSformer(nn.Module):
    def __init__(self, frames=8, size=224, patch=16, d=768, layers=8, classes=400):
        super().__init__()
        self.patch, n = nn.Conv2d(3, d, patch, patch), (size // patch) ** 2
        self.space, self.time = nn.Parameter(torch.zeros(1, 1, n, d)), nn.Parameter(torch.zeros(1, frames, 1, d))
        self.blocks, self.norm, self.head = nn.ModuleList(Block(d) for _ in range(layers)), nn.LayerNorm(d), nn.Linear(d, classes)

    def forward(self, video):
        b, t = video.shape[:2]
        x = self.patch(video.flatten(0, 1)).flatten(2).transpose(1, 2).view(b, t, -1, 768)
        x = x + self.space + self.time
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean((1, 2)))


model = TimeSformer().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, weight_decay=1e-4)
for step in range(60):
    for _ in range(2):
        clip, label = torch.randn(4, 8, 3, 224, 224).cuda(), torch.randint(0, 400, (4,)).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(clip), label) / 2
        loss.backward()
    opt.step()
    opt.zero_grad()
    if step % 10 == 0:
        print(step, loss.item())
