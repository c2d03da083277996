import torch, torch.nn as nn, torch.nn.functional as F, torchvision
class SimCLR(nn.Module):
    def __init__(self, dim=128): super().__init__(); self.f = torchvision.models.resnet18(weights=None); d = self.f.fc.in_features; self.f.fc = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, dim))
    def forward(self, x): return F.normalize(self.f(x), dim=1)
def nt_xent(z, t=0.07):
    n = z.size(0); s = z @ z.T / t; s.masked_fill_(torch.eye(n, dtype=torch.bool, device=z.device), -9e15); target = torch.arange(n, device=z.device).roll(n // 2); return F.cross_entropy(s, target)
net = SimCLR().cuda(); opt = torch.optim.AdamW(net.parameters(), lr=5e-4, weight_decay=1e-4)
for i in range(40):
    a, b = torch.randn(128, 3, 96, 96).cuda(non_blocking=True), torch.randn(128, 3, 96, 96).cuda(non_blocking=True); loss = nt_xent(net(torch.cat((a, b), 0))); opt.zero_grad(); loss.backward(); opt.step(); print(f"{i} {loss.item():.3f}")
