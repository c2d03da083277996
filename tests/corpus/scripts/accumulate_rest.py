"""Gradient accumulation with a remainder, a loss scale, a warm-up, an average of the weights and early stopping."""
import argparse, copy, torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
class DS(Dataset):
    def __init__(s, n): s.n = n
    def __len__(s): return s.n
    def __getitem__(s, i): return torch.randn(3, 32, 32), i % 10
def main():
    a = argparse.ArgumentParser(); a.add_argument("--bs", type=int, default=16); a.add_argument("--accum", type=int, default=4); args = a.parse_args()
    net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)).cuda()
    ema = copy.deepcopy(net).eval()
    for p in ema.parameters(): p.requires_grad_(False)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    sch = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1, (s + 1) / 500))
    sc = torch.amp.GradScaler("cuda")
    tr, va = DataLoader(DS(800), args.bs, num_workers=4), DataLoader(DS(100), 32)
    best, bad = float("inf"), 0
    for ep in range(10):
        net.train()
        for i, (x, y) in enumerate(tr):
            x, y = x.cuda(), y.cuda()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(net(x), y) / args.accum
            sc.scale(loss).backward()
            if (i + 1) % args.accum == 0 or i + 1 == len(tr):
                sc.unscale_(opt); torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                sc.step(opt); sc.update(); opt.zero_grad(set_to_none=True); sch.step()
                with torch.no_grad():
                    for e, p in zip(ema.parameters(), net.parameters()): e.lerp_(p, 0.001)
        net.eval(); tot = 0.0
        with torch.no_grad():
            for x, y in va: tot += F.cross_entropy(ema(x.cuda()), y.cuda()).item()
        print("val %.3f lr %.2e" % (tot, sch.get_last_lr()[0]))
        if tot < best: best, bad = tot, 0
        else: bad += 1
        if bad >= 2: print("early stop"); break
if __name__ == "__main__": main()
