"""Text-conditioned latent diffusion: U-Net with cross attention, frozen text encoder and VAE stem, EMA, fp16 autocast."""
import copy
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from transformers import CLIPTextConfig, CLIPTextModel


def time_embedding(t, dim):
    freqs = torch.exp(-math.log(10000) * torch.arange(dim // 2, device=t.device) / (dim // 2))
    args = t[:, None].float() * freqs[None]
    return torch.cat([args.cos(), args.sin()], -1)


class ResBlock(nn.Module):
    def __init__(self, i, o, t):
        super().__init__()
        self.n1, self.c1, self.t = nn.GroupNorm(32, i), nn.Conv2d(i, o, 3, padding=1), nn.Linear(t, o)
        self.n2, self.c2 = nn.GroupNorm(32, o), nn.Conv2d(o, o, 3, padding=1)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, emb):
        h = self.c1(F.silu(self.n1(x))) + self.t(F.silu(emb))[..., None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class CrossAttention(nn.Module):
    def __init__(self, c, context=512, heads=8):
        super().__init__()
        self.q, self.kv, self.o, self.h = nn.Linear(c, c, bias=False), nn.Linear(context, 2 * c, bias=False), nn.Linear(c, c), heads

    def forward(self, x, context):
        b, n, c = x.shape
        q = self.q(x).view(b, n, self.h, -1).transpose(1, 2)
        k, v = self.kv(context).view(b, context.size(1), 2, self.h, -1).permute(2, 0, 3, 1, 4)
        return self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))


class Spatial(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.inp, self.out = nn.GroupNorm(32, c), nn.Linear(c, c), nn.Linear(c, c)
        self.n1, self.n2, self.n3 = nn.LayerNorm(c), nn.LayerNorm(c), nn.LayerNorm(c)
        self.a1, self.a2 = CrossAttention(c, c), CrossAttention(c)
        self.ff1, self.ff2 = nn.Linear(c, 8 * c), nn.Linear(4 * c, c)

    def forward(self, x, context):
        b, c, h, w = x.shape
        y = self.inp(self.norm(x).flatten(2).transpose(1, 2))
        z = self.n1(y)
        y = y + self.a1(z, z)
        y = y + self.a2(self.n2(y), context)
        a, g = self.ff1(self.n3(y)).chunk(2, -1)
        y = y + self.ff2(a * F.gelu(g))
        return x + self.out(y).transpose(1, 2).view(b, c, h, w)


class UNet(nn.Module):
    def __init__(self, c=192, mult=(1, 2, 4), t=768):
        super().__init__()
        self.c, self.time = c, nn.Sequential(nn.Linear(c, t), nn.SiLU(), nn.Linear(t, t))
        self.inp, ws = nn.Conv2d(4, c, 3, padding=1), [c * m for m in mult]
        self.down, self.up, prev, skips = nn.ModuleList(), nn.ModuleList(), c, [c]
        for i, w in enumerate(ws):
            for _ in range(2):
                self.down.append(nn.ModuleList([ResBlock(prev, w, t), Spatial(w) if i else nn.Identity()]))
                prev = w
                skips.append(w)
            if i < len(ws) - 1:
                self.down.append(nn.Conv2d(w, w, 3, 2, 1))
                skips.append(w)
        self.mid = nn.ModuleList([ResBlock(prev, prev, t), Spatial(prev), ResBlock(prev, prev, t)])
        for i, w in reversed(list(enumerate(ws))):
            for k in range(3):
                self.up.append(nn.ModuleList([ResBlock(prev + skips.pop(), w, t), Spatial(w) if i else nn.Identity()]))
                prev = w
            if i:
                self.up.append(nn.Conv2d(w, w, 3, padding=1))
        self.norm, self.out = nn.GroupNorm(32, prev), nn.Conv2d(prev, 4, 3, padding=1)

    def forward(self, x, t, context):
        emb = self.time(time_embedding(t, self.c).to(x.dtype))
        hs = [self.inp(x)]
        for d in self.down:
            if isinstance(d, nn.Conv2d):
                hs.append(d(hs[-1]))
            else:
                h = d[0](hs[-1], emb)
                hs.append(d[1](h, context) if isinstance(d[1], Spatial) else h)
        h = self.mid[2](self.mid[1](self.mid[0](hs[-1], emb), context), emb)
        for u in self.up:
            if isinstance(u, nn.Conv2d):
                h = u(F.interpolate(h, scale_factor=2, mode="nearest"))
            else:
                h = u[0](torch.cat([h, hs.pop()], 1), emb)
                h = u[1](h, context) if isinstance(u[1], Spatial) else h
        return self.out(F.silu(self.norm(h)))


device = "cuda"
text = CLIPTextModel(CLIPTextConfig(hidden_size=512, num_hidden_layers=12, num_attention_heads=8, intermediate_size=2048)).to(device).eval().requires_grad_(False)
stem = nn.Sequential(nn.Conv2d(3, 128, 3, 2, 1), nn.SiLU(), nn.Conv2d(128, 256, 3, 2, 1), nn.SiLU(), nn.Conv2d(256, 8, 3, 2, 1)).to(device).requires_grad_(False)
unet = UNet().to(device)
ema = copy.deepcopy(unet).requires_grad_(False)
alphas = torch.cumprod(1 - torch.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2, 0).to(device)
opt = torch.optim.AdamW(unet.parameters(), lr=1e-4, weight_decay=1e-2)
scaler = torch.amp.GradScaler("cuda")
for step in range(40):
    images, ids = torch.randn(16, 3, 256, 256).to(device), torch.randint(1, 49000, (16, 77)).to(device)
    with torch.no_grad(), torch.autocast("cuda", torch.float16):
        mean, logvar = stem(images).chunk(2, 1)
        latents = 0.18215 * (mean + torch.exp(0.5 * logvar.clamp(-30, 20)) * torch.randn_like(mean))
        context = text(ids).last_hidden_state
    noise, t = torch.randn_like(latents), torch.randint(0, 1000, (16,), device=device)
    a = alphas[t][:, None, None, None]
    noisy = a.sqrt() * latents + (1 - a).sqrt() * noise
    with torch.autocast("cuda", torch.float16):
        pred = unet(noisy, t, context)
        loss = F.mse_loss(pred.float(), noise.float())
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    with torch.no_grad():
        for p, q in zip(ema.parameters(), unet.parameters()):
            p.mul_(0.9999).add_(q, alpha=1 - 0.9999)
    if step % 10 == 0:
        print(step, loss.item())
