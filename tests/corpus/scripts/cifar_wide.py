"""WideResNet-28-10 on CIFAR-sized images, mixed precision, channels last."""
import torch, torch.nn as nn, torch.nn.functional as F
class Block(nn.Module):
    def __init__(self, i, o, s): super().__init__(); self.n1, self.c1 = nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, s, 1, bias=False); self.n2, self.c2 = nn.BatchNorm2d(o), nn.Conv2d(o, o, 3, 1, 1, bias=False); self.skip = nn.Conv2d(i, o, 1, s, bias=False) if i != o or s > 1 else None
    def forward(self, x): y = F.relu(self.n1(x)); r = self.skip(y) if self.skip is not None else x; return self.c2(F.relu(self.n2(self.c1(y)))) + r
class Wide(nn.Module):
    def __init__(self, depth=28, k=10):
        super().__init__(); n = (depth - 4) // 6; w = [16, 16 * k, 32 * k, 64 * k]; self.stem = nn.Conv2d(3, 16, 3, 1, 1, bias=False); blocks = []
        for a, b, s in zip(w, w[1:], (1, 2, 2)): blocks += [Block(a if j == 0 else b, b, s if j == 0 else 1) for j in range(n)]
        self.blocks = nn.Sequential(*blocks); self.norm = nn.BatchNorm2d(w[3]); self.fc = nn.Linear(w[3], 10)
    def forward(self, x): return self.fc(F.adaptive_avg_pool2d(F.relu(self.norm(self.blocks(self.stem(x)))), 1).flatten(1))
net = Wide().cuda().to(memory_format=torch.channels_last); opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=5e-4, nesterov=True); scaler = torch.amp.GradScaler("cuda"); sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 200)
for it in range(45):
    x, y = torch.randn(128, 3, 32, 32).cuda().to(memory_format=torch.channels_last), torch.randint(0, 10, (128,)).cuda()
    with torch.autocast("cuda", torch.float16): loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
    opt.zero_grad(set_to_none=True); scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); sched.step()
    if it % 15 == 0: print(it, loss.item())
