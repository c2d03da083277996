"""PatchTST: a transformer over patches of each series, with reversible normalisation."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class RevIN(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n))

    def norm(self, x):
        self.mean = x.mean(1, keepdim=True).detach()
        self.std = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5).detach()
        return (x - self.mean) / self.std * self.weight + self.bias

    def denorm(self, x):
        return (x - self.bias) / (self.weight + 1e-10) * self.std + self.mean


class PatchTST(nn.Module):
    def __init__(self, channels=21, length=512, horizon=96, patch=16, stride=8, d=128, heads=16, layers=3, ff=256):
        super().__init__()
        self.patch, self.stride = patch, stride
        n = (length - patch) // stride + 2
        self.revin, self.pad = RevIN(channels), nn.ReplicationPad1d((0, stride))
        self.embed, self.pos = nn.Linear(patch, d), nn.Parameter(torch.randn(n, d) * 0.02)
        layer = nn.TransformerEncoderLayer(d, heads, ff, 0.2, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Sequential(nn.Flatten(-2), nn.Linear(n * d, horizon), nn.Dropout(0.2))

    def forward(self, x):
        b, _, c = x.shape
        x = self.pad(self.revin.norm(x).transpose(1, 2))
        x = x.unfold(-1, self.patch, self.stride)
        x = self.embed(x).flatten(0, 1) + self.pos
        x = self.encoder(x).view(b, c, *x.shape[1:])
        return self.revin.denorm(self.head(x).transpose(1, 2))


series = np.cumsum(np.random.randn(6000, 21), axis=0).astype("float32")
windows = np.lib.stride_tricks.sliding_window_view(series, 608, axis=0)[::2].transpose(0, 2, 1).copy()
x, y = torch.from_numpy(windows[:, :512]), torch.from_numpy(windows[:, 512:])
train = DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True, drop_last=True)
model = PatchTST().to("cuda:0")
optim = torch.optim.Adam(model.parameters(), lr=1e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(optim, max_lr=1e-4, steps_per_epoch=len(train), epochs=5, pct_start=0.3)
for epoch in range(5):
    losses = []
    for bx, by in train:
        bx, by = bx.float().to("cuda:0"), by.float().to("cuda:0")
        optim.zero_grad()
        loss = nn.functional.mse_loss(model(bx), by)
        losses.append(loss.item())
        loss.backward()
        optim.step()
        sched.step()
    print("epoch", epoch, "mse", np.average(losses))
