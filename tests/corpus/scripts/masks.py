import torch, torch.nn as nn, torch.nn.functional as F, numpy as np, time, os, sys, math, argparse, copy
class M(nn.Module):
    def __init__(s): super().__init__(); s.e = nn.Embedding(100, 32); s.r = nn.GRU(32, 32, batch_first=True); s.o = nn.Linear(32, 5)
    def forward(s, x, lens):
        h, _ = s.r(s.e(x)); mask = torch.arange(x.size(1), device=x.device)[None, :] < lens[:, None]
        last = h[torch.arange(x.size(0), device=x.device), lens - 1]; return s.o(h[mask]), s.o(last), mask
m = M().cuda(); opt = torch.optim.Adam(m.parameters())
for i in range(5):
    lens = torch.randint(3, 12, (8,)); x = torch.randint(0, 100, (8, int(lens.max()))); x, lens = x.cuda(), lens.cuda(); y = torch.randint(0, 5, x.shape).cuda()
    tok, last, mask = m(x, lens); loss = F.cross_entropy(tok, y[mask]) + last.mean(); opt.zero_grad(); loss.backward(); opt.step(); n = mask.sum().item(); print(loss.item() / n, n)
