# Face recognition: IResNet-50 with PReLU, ArcFace over 93,431 identities, fp16
import math
import torch, torch.nn as nn, torch.nn.functional as F

class IBlock(nn.Module):
    def __init__(self, i, o, s):
        super().__init__(); self.b1, self.c1, self.b2, self.act, self.c2, self.b3 = nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.PReLU(o), nn.Conv2d(o, o, 3, s, 1, bias=False), nn.BatchNorm2d(o)
        self.down = nn.Sequential(nn.Conv2d(i, o, 1, s, bias=False), nn.BatchNorm2d(o)) if s != 1 or i != o else None
    def forward(self, x):
        y = self.b3(self.c2(self.act(self.b2(self.c1(self.b1(x)))))); y += x if self.down is None else self.down(x); return y

class IResNet(nn.Module):
    def __init__(self, layers=(3, 4, 14, 3), dim=512):
        super().__init__(); body, c = [], 64
        for o, n in zip((64, 128, 256, 512), layers):
            for k in range(n): body.append(IBlock(c, o, 2 if k == 0 else 1)); c = o
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64)); self.body = nn.Sequential(*body); self.bn, self.fc, self.out = nn.BatchNorm2d(512), nn.Linear(512 * 49, dim), nn.BatchNorm1d(dim)
    def forward(self, x):
        with torch.amp.autocast("cuda"): x = self.bn(self.body(self.stem(x)))
        return self.out(self.fc(x.flatten(1).float()))

class ArcFace(nn.Module):
    def __init__(self, dim=512, classes=93431, s=64.0, m=0.5): super().__init__(); self.w = nn.Parameter(torch.normal(0, 0.01, (classes, dim))); self.s, self.cos, self.sin, self.th, self.mm = s, math.cos(m), math.sin(m), math.cos(math.pi - m), math.sin(math.pi - m) * m
    def forward(self, x, y):
        cosine = F.linear(F.normalize(x), F.normalize(self.w)).clamp(-1, 1); sine = torch.sqrt(1.0 - cosine.pow(2)).clamp(0, 1); phi = cosine * self.cos - sine * self.sin
        phi = torch.where(cosine > self.th, phi, cosine - self.mm); hot = torch.zeros_like(cosine).scatter_(1, y.view(-1, 1), 1)
        return F.cross_entropy((hot * phi + (1 - hot) * cosine) * self.s, y)

net, head = IResNet().cuda(), ArcFace().cuda(); opt = torch.optim.SGD([{"params": net.parameters()}, {"params": head.parameters()}], lr=0.1, momentum=0.9, weight_decay=5e-4); scaler = torch.amp.GradScaler("cuda", growth_interval=100)
for step in range(60):
    x, y = torch.randn(256, 3, 112, 112).cuda(), torch.randint(0, 93431, (256,)).cuda()
    loss = head(net(x), y); scaler.scale(loss).backward(); scaler.unscale_(opt); nn.utils.clip_grad_norm_(net.parameters(), 5); scaler.step(opt); scaler.update(); opt.zero_grad()
    if step % 20 == 0: print(step, loss.item())
