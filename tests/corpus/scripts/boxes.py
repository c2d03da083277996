import torch, torch.nn as nn, torch.nn.functional as F, numpy as np, time, os, sys, math, argparse, copy
class Y(nn.Module):
    def __init__(s): super().__init__(); s.b = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.LeakyReLU(.1), nn.Conv2d(16, 32, 3, 2, 1), nn.LeakyReLU(.1), nn.Conv2d(32, 30, 3, 2, 1))
    def forward(s, x): return s.b(x).permute(0, 2, 3, 1)
def loss_fn(p, t):
    obj = t[..., 4] > 0; noobj = t[..., 4] == 0
    co, no = p[obj].view(-1, 30), p[noobj].view(-1, 30); tt = t[obj].view(-1, 30)
    return F.mse_loss(co[:, :4], tt[:, :4], reduction='sum') + .5 * F.mse_loss(no[:, 4], torch.zeros_like(no[:, 4])) + F.mse_loss(co[:, 10:], tt[:, 10:])
def target():
    t = torch.zeros(4, 16, 16, 30)
    for b in range(4):
        for _ in range(3): t[b, np.random.randint(16), np.random.randint(16), :5] = torch.rand(5) + .1
    return t
m = Y().to('cuda'); opt = torch.optim.Adam(m.parameters())
for i in range(6):
    x, t = torch.rand(4, 3, 128, 128).to('cuda'), target().to('cuda'); loss = loss_fn(m(x), t); opt.zero_grad(); loss.backward(); opt.step(); print(loss.item())
