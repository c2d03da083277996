import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, random_split
from tqdm import tqdm
class DoubleConv(nn.Sequential):
    def __init__(s, i, o): super().__init__(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True), nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
class Up(nn.Module):
    def __init__(s, i, o): super().__init__(); s.up = nn.ConvTranspose2d(i, i // 2, 2, stride=2); s.conv = DoubleConv(i, o)
    def forward(s, a, b):
        a = s.up(a); dy, dx = b.size(2) - a.size(2), b.size(3) - a.size(3); a = F.pad(a, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2]); return s.conv(torch.cat([b, a], 1))
class UNet(nn.Module):
    def __init__(s, n=3, k=2):
        super().__init__(); w = [64, 128, 256, 512, 1024]; s.inc = DoubleConv(n, 64); s.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), DoubleConv(a, b)) for a, b in zip(w, w[1:]))
        s.up = nn.ModuleList(Up(b, a) for a, b in reversed(list(zip(w, w[1:])))); s.out = nn.Conv2d(64, k, 1)
    def forward(s, x):
        xs = [s.inc(x)]
        for d in s.down: xs.append(d(xs[-1]))
        x = xs.pop()
        for u in s.up: x = u(x, xs.pop())
        return s.out(x)
def dice(p, t, eps=1e-6): inter = 2 * (p * t).sum((-1, -2)); return ((inter + eps) / (p.sum((-1, -2)) + t.sum((-1, -2)) + eps)).mean()
class Cars(Dataset):
    def __len__(s): return 120
    def __getitem__(s, i): m = np.random.rand(319, 479) > 0.5; return {"image": torch.as_tensor(np.random.rand(3, 319, 479).astype(np.float32)), "mask": torch.as_tensor(m.astype(np.int64))}
@torch.inference_mode()
def evaluate(net, loader, device):
    net.eval(); score = 0
    for b in loader:
        p = net(b["image"].to(device)); m = F.one_hot(b["mask"].to(device), 2).permute(0, 3, 1, 2).float(); p = F.one_hot(p.argmax(1), 2).permute(0, 3, 1, 2).float(); score += dice(p[:, 1:], m[:, 1:])
    net.train(); return score / max(len(loader), 1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu"); net = UNet().to(device=device, memory_format=torch.channels_last)
train, val = random_split(Cars(), [104, 16], generator=torch.Generator().manual_seed(0)); args = dict(batch_size=8, num_workers=2, pin_memory=True)
tl, vl = DataLoader(train, shuffle=True, **args), DataLoader(val, drop_last=True, **args)
opt = torch.optim.RMSprop(net.parameters(), lr=1e-5, weight_decay=1e-8, momentum=0.999, foreach=True); sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, "max", patience=5); crit = nn.CrossEntropyLoss(); gs = 0
for epoch in range(1, 6):
    with tqdm(total=len(train), desc=f"Epoch {epoch}", unit="img") as bar:
        for b in tl:
            x = b["image"].to(device=device, dtype=torch.float32, memory_format=torch.channels_last); y = b["mask"].to(device=device, dtype=torch.long)
            pred = net(x); loss = crit(pred, y); loss += 1 - dice(F.softmax(pred, 1).float(), F.one_hot(y, 2).permute(0, 3, 1, 2).float())
            opt.zero_grad(set_to_none=True); loss.backward(); torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0); opt.step(); bar.update(x.shape[0]); gs += 1; bar.set_postfix(**{"loss (batch)": loss.item()})
            if gs % 10 == 0: s = evaluate(net, vl, device); sched.step(s); print("dice", s)
