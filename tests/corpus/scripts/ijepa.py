# Joint-embedding predictive architecture: context encoder, EMA target encoder, a narrow predictor of masked patches
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

def layers(d, n, h):
    return nn.ModuleList(nn.TransformerEncoderLayer(d, h, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(n))

def take(x, idx):
    return torch.gather(x, 1, idx.unsqueeze(-1).repeat(1, 1, x.size(-1)))

class Encoder(nn.Module):
    def __init__(self, d=768, depth=12, heads=12, patches=196):
        super().__init__()
        self.patch = nn.Conv2d(3, d, 16, 16)
        self.pos = nn.Parameter(torch.zeros(1, patches, d), requires_grad=False)
        nn.init.normal_(self.pos, std=0.02)
        self.blocks, self.norm = layers(d, depth, heads), nn.LayerNorm(d)
    def forward(self, img, keep=None):
        x = self.patch(img).flatten(2).transpose(1, 2) + self.pos
        if keep is not None: x = take(x, keep)
        for b in self.blocks: x = b(x)
        return self.norm(x)

class Predictor(nn.Module):
    def __init__(self, d=768, w=384, depth=6, patches=196):
        super().__init__()
        self.inp, self.out, self.mask = nn.Linear(d, w), nn.Linear(w, d), nn.Parameter(torch.zeros(1, 1, w))
        self.pos = nn.Parameter(torch.zeros(1, patches, w), requires_grad=False)
        self.blocks, self.norm = layers(w, depth, 12), nn.LayerNorm(w)
    def forward(self, x, keep, want):
        n = x.size(1); pos = self.pos.expand(x.size(0), -1, -1)
        x = torch.cat([self.inp(x) + take(pos, keep), self.mask + take(pos, want)], 1)
        for b in self.blocks: x = b(x)
        return self.out(self.norm(x)[:, n:])

def masks(batch, keep=90, blocks=4, side=(6, 6)):
    """One context per image and four target blocks, on the host like a collator."""
    k = torch.stack([torch.randperm(196)[:keep].sort().values for _ in range(batch)])
    grid = torch.arange(196).view(14, 14); found = []
    for _ in range(blocks):
        top, left = torch.randint(0, 14 - side[0] + 1, (1,)).item(), torch.randint(0, 14 - side[1] + 1, (1,)).item()
        found.append(grid[top:top + side[0], left:left + side[1]].reshape(1, -1).repeat(batch, 1))
    return k, found

device = "cuda"
enc, pred = Encoder().to(device), Predictor().to(device)
target = copy.deepcopy(enc)
for p in target.parameters(): p.requires_grad = False
opt = torch.optim.AdamW([*enc.parameters(), *pred.parameters()], lr=1e-3, weight_decay=0.04)
momentum = (0.996 + i * (1.0 - 0.996) / 60 for i in range(61))
for step in range(60):
    img = torch.randn(128, 3, 224, 224).to(device, non_blocking=True)
    keep, wants = masks(128); keep = keep.to(device); wants = [w.to(device) for w in wants]
    with torch.amp.autocast("cuda", dtype=torch.bfloat16):
        with torch.no_grad():
            h = F.layer_norm(target(img), (768,)); h = torch.cat([take(h, w) for w in wants])
        z = enc(img, keep)
        z = torch.cat([pred(z, keep, w) for w in wants])
        loss = F.smooth_l1_loss(z, h)
    loss.backward(); opt.step(); opt.zero_grad()
    with torch.no_grad():
        m = next(momentum)
        for q, k in zip(enc.parameters(), target.parameters()): k.data.mul_(m).add_((1.0 - m) * q.detach().data)
    if step % 20 == 0: print(step, loss.item())
