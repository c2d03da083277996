import torch, torch.nn as nn, torch.nn.functional as F

class SE(nn.Module):
    def __init__(self, c, r=4): super().__init__(); self.a, self.b = nn.Conv2d(c, c // r, 1), nn.Conv2d(c // r, c, 1)
    def forward(self, x): return x * torch.sigmoid(self.b(F.silu(self.a(x.mean((2, 3), keepdim=True)))))

class MBConv(nn.Module):
    def __init__(self, i, o, s, e=4):
        super().__init__(); h = i * e; self.skip = s == 1 and i == o
        self.body = nn.Sequential(nn.Conv2d(i, h, 1, bias=False), nn.BatchNorm2d(h), nn.SiLU(), nn.Conv2d(h, h, 3, s, 1, groups=h, bias=False), nn.BatchNorm2d(h), nn.SiLU(), SE(h), nn.Conv2d(h, o, 1, bias=False), nn.BatchNorm2d(o))
    def forward(self, x): return x + self.body(x) if self.skip else self.body(x)

class Net(nn.Module):
    def __init__(self, classes=1000):
        super().__init__(); layers, c = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.SiLU()], 32
        for o, n, s in ((48, 3, 1), (96, 4, 2), (160, 6, 2), (256, 8, 2)):
            for k in range(n): layers.append(MBConv(c, o, s if k == 0 else 1)); c = o
        self.f = nn.Sequential(*layers); self.h = nn.Linear(c, classes)
    def forward(self, x): return self.h(self.f(x).mean((2, 3)))

torch.set_float32_matmul_precision("high"); torch.backends.cudnn.benchmark = True
net = Net().cuda().to(memory_format=torch.channels_last); compiled = torch.compile(net)
opt = torch.optim.RMSprop(net.parameters(), lr=0.016, alpha=0.9, momentum=0.9, eps=1e-3)
for step in range(80):
    x, y = torch.randn(96, 3, 224, 224).cuda().to(memory_format=torch.channels_last), torch.randint(0, 1000, (96,)).cuda()
    with torch.amp.autocast("cuda", dtype=torch.bfloat16): loss = F.cross_entropy(compiled(x), y)
    loss.backward(); opt.step(); opt.zero_grad(set_to_none=True)
    if step % 20 == 0: print(step, loss.item())
