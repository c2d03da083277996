"""Swin-S written out: windows, shifts, relative position bias, patch merging; fp16 with a scaler."""
import torch
import torch.nn as nn


def partition(x, w):
    B, H, W, C = x.shape
    return x.view(B, H // w, w, W // w, w, C).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, w * w, C)


def reverse(windows, w, H, W):
    B = int(windows.shape[0] / (H * W / w / w))
    x = windows.view(B, H // w, W // w, w, w, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)


class WindowAttention(nn.Module):
    def __init__(self, dim, w, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.table = nn.Parameter(torch.zeros((2 * w - 1) ** 2, heads))
        coords = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(w), indexing="ij")).flatten(1)
        rel = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous()
        rel[:, :, 0] += w - 1
        rel[:, :, 1] += w - 1
        rel[:, :, 0] *= 2 * w - 1
        self.register_buffer("index", rel.sum(-1))
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self, x, mask=None):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.table[self.index.view(-1)].view(N, N, -1).permute(2, 0, 1).contiguous()
        attn = attn + bias.unsqueeze(0)
        if mask is not None:
            n = mask.shape[0]
            attn = attn.view(B // n, n, self.heads, N, N) + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, self.heads, N, N)
        x = (attn.softmax(-1) @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


class Block(nn.Module):
    def __init__(self, dim, size, heads, w=7, shift=0):
        super().__init__()
        if size <= w:
            shift, w = 0, size
        self.size, self.w, self.shift = size, w, shift
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, w, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        mask = None
        if shift:
            img = torch.zeros(1, size, size, 1)
            cnt = 0
            for h in (slice(0, -w), slice(-w, -shift), slice(-shift, None)):
                for v in (slice(0, -w), slice(-w, -shift), slice(-shift, None)):
                    img[:, h, v, :] = cnt
                    cnt += 1
            m = partition(img, w).view(-1, w * w)
            mask = m.unsqueeze(1) - m.unsqueeze(2)
            mask = mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0)
        self.register_buffer("mask", mask)

    def forward(self, x):
        B, L, C = x.shape
        y = self.n1(x).view(B, self.size, self.size, C)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = reverse(self.attn(partition(y, self.w), self.mask), self.w, self.size, self.size)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y.view(B, L, C)
        return x + self.mlp(self.n2(x))


class Merge(nn.Module):
    def __init__(self, dim, size):
        super().__init__()
        self.size, self.norm, self.red = size, nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        B, L, C = x.shape
        x = x.view(B, self.size, self.size, C)
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.red(self.norm(x.view(B, -1, 4 * C)))


class Swin(nn.Module):
    def __init__(self, depths=(2, 2, 18, 2), heads=(3, 6, 12, 24), dim=96, classes=1000):
        super().__init__()
        self.embed, self.norm0 = nn.Conv2d(3, dim, 4, 4), nn.LayerNorm(dim)
        layers, size = [], 56
        for i, (d, h) in enumerate(zip(depths, heads)):
            layers += [Block(dim, size, h, shift=0 if j % 2 == 0 else 3) for j in range(d)]
            if i < 3:
                layers.append(Merge(dim, size))
                size, dim = size // 2, dim * 2
        self.layers = nn.ModuleList(layers)
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.norm0(self.embed(x).flatten(2).transpose(1, 2))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


model = Swin().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
scaler = torch.amp.GradScaler("cuda")
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(50):
    images, labels = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(1000, (64,), device="cuda")
    optimizer.zero_grad()
    with torch.amp.autocast("cuda"):
        loss = criterion(model(images), labels)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 10 == 0:
        print(f"[{step}] loss {loss.item():.4f} grad {norm:.2f} scale {scaler.get_scale()}")
