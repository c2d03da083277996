"""Conformer-M for speech with CTC: convolutional subsampling, macaron feed-forward, SpecAugment on the GPU."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class FeedForward(nn.Sequential):
    def __init__(self, d):
        super().__init__(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * d, d), nn.Dropout(0.1))


class Convolution(nn.Module):
    def __init__(self, d, k=31):
        super().__init__()
        self.norm, self.p1, self.dw = nn.LayerNorm(d), nn.Conv1d(d, 2 * d, 1), nn.Conv1d(d, d, k, padding=k // 2, groups=d)
        self.bn, self.p2 = nn.BatchNorm1d(d), nn.Conv1d(d, d, 1)

    def forward(self, x):
        x = F.glu(self.p1(self.norm(x).transpose(1, 2)), 1)
        return F.dropout(self.p2(F.silu(self.bn(self.dw(x)))), 0.1, self.training).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.f1, self.f2, self.conv = FeedForward(d), FeedForward(d), Convolution(d)
        self.n, self.att, self.out = nn.LayerNorm(d), nn.MultiheadAttention(d, h, 0.1, batch_first=True), nn.LayerNorm(d)

    def forward(self, x, pad):
        x = x + 0.5 * self.f1(x)
        y = self.n(x)
        x = x + self.att(y, y, y, key_padding_mask=pad, need_weights=False)[0]
        x = x + self.conv(x)
        return self.out(x + 0.5 * self.f2(x))


class Conformer(nn.Module):
    def __init__(self, d=256, layers=16, heads=4, vocab=1000):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, d, 3, 2), nn.ReLU(), nn.Conv2d(d, d, 3, 2), nn.ReLU())
        self.lin, self.blocks = nn.Linear(d * 19, d), nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.head = nn.Linear(d, vocab)

    def forward(self, x, lengths):
        x = self.sub(x.unsqueeze(1))
        b, c, t, f = x.shape
        x = self.lin(x.transpose(1, 2).reshape(b, t, c * f))
        lengths = ((lengths - 1) // 2 - 1) // 2
        pad = torch.arange(t, device=x.device)[None] >= lengths[:, None]
        for block in self.blocks:
            x = block(x, pad)
        return self.head(x).log_softmax(-1), lengths


def augment(x, freq=27, time=100):
    x = x.clone()
    for row in x:
        f0, t0 = torch.randint(0, 80 - freq, (1,)).item(), torch.randint(0, x.size(1) - time, (1,)).item()
        row[:, f0 : f0 + freq] = 0
        row[t0 : t0 + time] = 0
    return x


model = Conformer().to("cuda")
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=1e-3)
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
for step in range(40):
    feats = augment(torch.randn(32, 1200, 80).cuda())
    lengths = torch.linspace(800, 1200, 32).long().cuda()
    targets, sizes = torch.randint(1, 1000, (32, 60)).cuda(), torch.full((32,), 60, dtype=torch.long)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logp, out = model(feats, lengths)
    loss = ctc(logp.float().transpose(0, 1), targets, out.cpu(), sizes)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    opt.step()
    if step % 10 == 0:
        print(f"{step} {loss.item():.2f}")
