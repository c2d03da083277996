from functools import partial
import torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint
class Attention(nn.Module):
    def __init__(self, d, h): super().__init__(); self.h, self.scale = h, (d // h) ** -0.5; self.qkv = nn.Linear(d, 3 * d); self.proj = nn.Linear(d, d)
    def forward(self, x): B, N, C = x.shape; q, k, v = self.qkv(x).reshape(B, N, 3, self.h, C // self.h).permute(2, 0, 3, 1, 4).unbind(0); a = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1); return self.proj((a @ v).transpose(1, 2).reshape(B, N, C))
class Block(nn.Module):
    def __init__(self, d, h, norm): super().__init__(); self.n1, self.n2 = norm(d), norm(d); self.a = Attention(d, h); self.m = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
    def forward(self, x): x = x + self.a(self.n1(x)); return x + self.m(self.n2(x))
class MAE(nn.Module):
    def __init__(self, img=224, p=16, d=768, L=12, h=12, dd=512, dL=8, dh=16):
        super().__init__(); norm = partial(nn.LayerNorm, eps=1e-6); n = (img // p) ** 2; self.p = p; self.patch = nn.Conv2d(3, d, p, p); self.pos = nn.Parameter(torch.zeros(1, n + 1, d), requires_grad=False); self.cls = nn.Parameter(torch.zeros(1, 1, d)); self.enc = nn.ModuleList(Block(d, h, norm) for _ in range(L)); self.norm = norm(d); self.de = nn.Linear(d, dd); self.mask = nn.Parameter(torch.zeros(1, 1, dd)); self.dpos = nn.Parameter(torch.zeros(1, n + 1, dd), requires_grad=False); self.dec = nn.ModuleList(Block(dd, dh, norm) for _ in range(dL)); self.dnorm = norm(dd); self.pred = nn.Linear(dd, p * p * 3)
    def patchify(self, x): p = self.p; h = x.shape[2] // p; return torch.einsum("nchpwq->nhwpqc", x.reshape(x.shape[0], 3, h, p, h, p)).reshape(x.shape[0], h * h, p * p * 3)
    def forward(self, img, ratio=0.75):
        x = self.patch(img).flatten(2).transpose(1, 2) + self.pos[:, 1:]; N, L, D = x.shape; keep = int(L * (1 - ratio)); shuffle = torch.argsort(torch.rand(N, L, device=x.device), dim=1); restore = torch.argsort(shuffle, dim=1)
        x = torch.gather(x, 1, shuffle[:, :keep].unsqueeze(-1).repeat(1, 1, D)); mask = torch.ones([N, L], device=x.device); mask[:, :keep] = 0; mask = torch.gather(mask, 1, restore); x = torch.cat((self.cls.expand(N, -1, -1) + self.pos[:, :1], x), 1)
        for b in self.enc: x = checkpoint(b, x, use_reentrant=False)
        x = self.de(self.norm(x)); y = torch.cat([x[:, 1:], self.mask.repeat(N, L + 1 - x.shape[1], 1)], 1); y = torch.gather(y, 1, restore.unsqueeze(-1).repeat(1, 1, x.shape[2])); x = torch.cat([x[:, :1], y], 1) + self.dpos
        for b in self.dec: x = b(x)
        t = self.patchify(img); t = (t - t.mean(-1, keepdim=True)) / (t.var(-1, keepdim=True) + 1e-6) ** 0.5; return (((self.pred(self.dnorm(x))[:, 1:] - t) ** 2).mean(-1) * mask).sum() / mask.sum()
device = torch.device("cuda"); model = MAE().to(device); opt = torch.optim.AdamW(model.parameters(), lr=1.5e-4, betas=(0.9, 0.95)); scaler = torch.amp.GradScaler("cuda")
for it in range(40):
    x = torch.randn(64, 3, 224, 224, pin_memory=torch.cuda.is_available()).to(device, non_blocking=True)
    with torch.amp.autocast("cuda"): loss = model(x)
    scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad(); torch.cuda.synchronize(); print(it, "loss", loss.item())
