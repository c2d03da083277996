import torch, torch.nn as nn, torch.nn.functional as F, numpy as np, time, os, sys, math, argparse, copy
from torch.utils.data import DataLoader, TensorDataset
class Prefetcher:
    def __init__(s, l): s.l = iter(l); s.stream = torch.cuda.Stream(); s.mean = torch.tensor([.5 * 255] * 3).cuda().view(1, 3, 1, 1); s.preload()
    def preload(s):
        try: s.ni, s.nt = next(s.l)
        except StopIteration: s.ni = None; s.nt = None; return
        with torch.cuda.stream(s.stream): s.ni = s.ni.cuda(non_blocking=True).float().sub_(s.mean); s.nt = s.nt.cuda(non_blocking=True)
    def next(s):
        torch.cuda.current_stream().wait_stream(s.stream); i, t = s.ni, s.nt
        if i is not None: i.record_stream(torch.cuda.current_stream()); t.record_stream(torch.cuda.current_stream())
        s.preload(); return i, t
torch.cuda.set_device(0); torch.cuda.manual_seed_all(0); torch.backends.cudnn.deterministic = True
m = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)).cuda(); opt = torch.optim.SGD(m.parameters(), .1)
dl = DataLoader(TensorDataset(torch.randint(0, 255, (160, 3, 32, 32), dtype=torch.uint8), torch.randint(0, 10, (160,))), 16, pin_memory=True)
for ep in range(2):
    pf = Prefetcher(dl); x, y = pf.next()
    while x is not None:
        loss = F.cross_entropy(m(x), y); opt.zero_grad(); loss.backward(); opt.step(); x, y = pf.next()
    print(torch.cuda.memory_stats().get('allocated_bytes.all.peak', 0), torch.cuda.mem_get_info(), torch.cuda.get_device_properties(0).total_memory)
