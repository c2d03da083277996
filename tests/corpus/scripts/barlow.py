import torch, torch.nn as nn, torchvision
class BarlowTwins(nn.Module):
    def __init__(self, dim=2048): super().__init__(); self.backbone = torchvision.models.resnet18(weights=None); self.backbone.fc = nn.Identity(); self.proj = nn.Sequential(nn.Linear(512, dim, bias=False), nn.BatchNorm1d(dim), nn.ReLU(True), nn.Linear(dim, dim, bias=False), nn.BatchNorm1d(dim), nn.ReLU(True), nn.Linear(dim, dim, bias=False)); self.bn = nn.BatchNorm1d(dim, affine=False)
    def forward(self, a, b): z1, z2 = self.proj(self.backbone(a)), self.proj(self.backbone(b)); c = self.bn(z1).T @ self.bn(z2) / len(a); on = (torch.diagonal(c) - 1).pow(2).sum(); off = c.flatten()[:-1].view(c.shape[0] - 1, c.shape[0] + 1)[:, 1:].pow(2).sum(); return on + 0.005 * off
class LARS(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.9, eta=0.001): super().__init__(params, dict(lr=lr, momentum=momentum, eta=eta))
    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is None: continue
                d = p.grad
                if p.ndim > 1: w, u = torch.norm(p), torch.norm(d); one = torch.ones_like(w); d = d.mul(torch.where(w > 0, torch.where(u > 0, g["eta"] * w / u, one), one))
                s = self.state[p]
                if "mu" not in s: s["mu"] = torch.zeros_like(p)
                s["mu"].mul_(g["momentum"]).add_(d); p.add_(s["mu"], alpha=-g["lr"])
model = BarlowTwins().cuda(); opt = LARS(model.parameters(), lr=0.2)
for step in range(50):
    a, b = torch.randn(128, 3, 112, 112).cuda(non_blocking=True), torch.randn(128, 3, 112, 112).cuda(non_blocking=True); opt.zero_grad(); loss = model(a, b); loss.backward(); opt.step()
print(loss.item())
