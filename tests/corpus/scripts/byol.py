import copy, math
import torch, torch.nn as nn, torch.nn.functional as F
from torchvision.models import resnet50

def mlp(i, h=4096, o=256):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(inplace=True), nn.Linear(h, o))

class BYOL(nn.Module):
    def __init__(self, base=0.996):
        super().__init__()
        self.online = resnet50(weights=None)
        self.online.fc = mlp(2048)
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters(): p.requires_grad = False
        self.predictor = mlp(256)
        self.base = base
    @torch.no_grad()
    def update(self, step, total):
        tau = 1 - (1 - self.base) * (math.cos(math.pi * step / total) + 1) / 2
        for o, t in zip(self.online.parameters(), self.target.parameters()):
            t.data = tau * t.data + (1 - tau) * o.data
    def forward(self, a, b):
        pa, pb = self.predictor(self.online(a)), self.predictor(self.online(b))
        with torch.no_grad():
            za, zb = self.target(a).detach(), self.target(b).detach()
        d = lambda p, z: 2 - 2 * (F.normalize(p, dim=-1) * F.normalize(z, dim=-1)).sum(-1)
        return (d(pa, zb) + d(pb, za)).mean()

net = BYOL()
net = net.to("cuda"); net.train()
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.2, momentum=0.9, weight_decay=1.5e-6)
TOTAL = 50
for step in range(TOTAL):
    img = torch.randn(96, 3, 224, 224)
    a, b = img.cuda(), img.flip(-1).cuda()
    loss = net(a, b)
    opt.zero_grad(); loss.backward(); opt.step(); net.update(step, TOTAL)
    if step % 10 == 0: print("step", step, "loss", loss.item())
