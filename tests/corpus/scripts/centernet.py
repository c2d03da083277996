# Objects as points: heatmaps, sizes and offsets at a quarter of the resolution
import numpy as np
import torch, torch.nn as nn, torch.nn.functional as F, torchvision
from torch.utils.data import Dataset, DataLoader

class Boxes(Dataset):
    def __init__(self, n=640, size=512, classes=80):
        self.n, self.size, self.classes = n, size, classes
        self.rng = np.random.default_rng(0)
    def __len__(self): return self.n
    def __getitem__(self, i):
        s = self.size // 4
        heat = np.zeros((self.classes, s, s), np.float32); wh = np.zeros((128, 2), np.float32); reg = np.zeros((128, 2), np.float32)
        ind, mask = np.zeros(128, np.int64), np.zeros(128, np.float32)
        yy, xx = np.mgrid[:s, :s]
        for k in range(self.rng.integers(3, 12)):
            cx, cy = self.rng.uniform(2, s - 3, 2); w, h = self.rng.uniform(4, s / 2, 2); c = self.rng.integers(self.classes)
            x, y = int(cx), int(cy); sigma = max(1.0, min(w, h) / 12)
            np.maximum(heat[c], np.exp(-((xx - x) ** 2 + (yy - y) ** 2) / (2 * sigma ** 2)), out=heat[c])
            wh[k] = w, h; reg[k] = cx - x, cy - y; ind[k] = y * s + x; mask[k] = 1
        return torch.from_numpy(self.rng.standard_normal((3, self.size, self.size)).astype(np.float32)), heat, wh, reg, ind, mask

class CenterNet(nn.Module):
    def __init__(self, classes=80):
        super().__init__()
        r = torchvision.models.resnet34(weights=None)
        self.body = nn.Sequential(r.conv1, r.bn1, r.relu, r.maxpool, r.layer1, r.layer2, r.layer3, r.layer4)
        ups, c = [], 512
        for o in (256, 128, 64):
            ups += [nn.Conv2d(c, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True), nn.ConvTranspose2d(o, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]; c = o
        self.up = nn.Sequential(*ups)
        head = lambda o: nn.Sequential(nn.Conv2d(64, 256, 3, 1, 1), nn.ReLU(True), nn.Conv2d(256, o, 1))
        self.hm, self.wh, self.reg = head(classes), head(2), head(2)
        self.hm[-1].bias.data.fill_(-2.19)
    def forward(self, x):
        x = self.up(self.body(x)); return self.hm(x), self.wh(x), self.reg(x)

def focal(pred, gt):
    pos, neg = gt.eq(1).float(), gt.lt(1).float(); weights = torch.pow(1 - gt, 4)
    pred = torch.clamp(pred.sigmoid_(), min=1e-4, max=1 - 1e-4)
    p = torch.log(pred) * torch.pow(1 - pred, 2) * pos; n = torch.log(1 - pred) * torch.pow(pred, 2) * weights * neg
    num = pos.float().sum(); p, n = p.sum(), n.sum()
    return -n if num == 0 else -(p + n) / num

def gathered(feat, ind):
    feat = feat.permute(0, 2, 3, 1).contiguous(); feat = feat.view(feat.size(0), -1, feat.size(3))
    return feat.gather(1, ind.unsqueeze(2).expand(ind.size(0), ind.size(1), feat.size(2)))

def l1(out, mask, ind, target):
    mask = mask.unsqueeze(2).expand_as(target).float(); return F.l1_loss(gathered(out, ind) * mask, target * mask, reduction="sum") / (mask.sum() + 1e-4)

if __name__ == "__main__":
    model = CenterNet().cuda(); opt = torch.optim.Adam(model.parameters(), 5e-4)
    for epoch in range(4):
        for i, batch in enumerate(DataLoader(Boxes(), batch_size=16, shuffle=True, num_workers=4, pin_memory=True, drop_last=True)):
            x, heat, wh, reg, ind, mask = [t.cuda(non_blocking=True) for t in batch]
            h, w, r = model(x); hl, wl, rl = focal(h, heat), l1(w, mask, ind, wh), l1(r, mask, ind, reg)
            loss = hl + 0.1 * wl + rl; opt.zero_grad(); loss.backward(); opt.step()
            if i % 10 == 0: print(f"epoch {epoch} {i} hm {hl.item():.3f} wh {wl.item():.3f} off {rl.item():.3f}")
