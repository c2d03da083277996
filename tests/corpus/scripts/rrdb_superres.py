"""ESRGAN's generator for 4x super-resolution: dense residual blocks, L1, cudnn.benchmark, mixed precision."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Dense(nn.Module):
    def __init__(self, c=64, g=32):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(c + k * g, g if k < 4 else c, 3, 1, 1) for k in range(5))

    def forward(self, x):
        found = [x]
        for k, conv in enumerate(self.convs):
            y = conv(torch.cat(found, 1))
            found.append(F.leaky_relu(y, 0.2) if k < 4 else y)
        return found[-1] * 0.2 + x


class RRDB(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Dense(), Dense(), Dense()

    def forward(self, x):
        return self.c(self.b(self.a(x))) * 0.2 + x


class Net(nn.Module):
    def __init__(self, blocks=12):
        super().__init__()
        self.first, self.body, self.mid = nn.Conv2d(3, 64, 3, 1, 1), nn.Sequential(*[RRDB() for _ in range(blocks)]), nn.Conv2d(64, 64, 3, 1, 1)
        self.u1, self.u2, self.hr, self.last = nn.Conv2d(64, 64, 3, 1, 1), nn.Conv2d(64, 64, 3, 1, 1), nn.Conv2d(64, 64, 3, 1, 1), nn.Conv2d(64, 3, 3, 1, 1)

    def forward(self, x):
        x = self.first(x)
        x = x + self.mid(self.body(x))
        x = F.leaky_relu(self.u1(F.interpolate(x, scale_factor=2, mode="nearest")), 0.2)
        x = F.leaky_relu(self.u2(F.interpolate(x, scale_factor=2, mode="nearest")), 0.2)
        return self.last(F.leaky_relu(self.hr(x), 0.2))


torch.backends.cudnn.benchmark = True
net = Net().cuda()
opt = torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.9, 0.99))
sched = torch.optim.lr_scheduler.MultiStepLR(opt, [20, 30], 0.5)
scaler = torch.amp.GradScaler()
for it in range(50):
    hr = torch.rand(16, 3, 192, 192).cuda()
    lr = F.interpolate(hr, scale_factor=0.25, mode="bicubic", align_corners=False)
    with torch.amp.autocast("cuda"):
        loss = F.l1_loss(net(lr), hr)
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    sched.step()
    if it % 10 == 0:
        print(it, loss.item())
