import torch, torch.nn as nn
from torchvision.models import resnet18
class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kw): super().__init__(params, dict(rho=rho, **kw)); self.base = base(self.param_groups, **kw); self.param_groups = self.base.param_groups
    @torch.no_grad()
    def first_step(self):
        norm = torch.norm(torch.stack([p.grad.norm(2) for g in self.param_groups for p in g["params"] if p.grad is not None]), 2)
        for g in self.param_groups:
            scale = g["rho"] / (norm + 1e-12)
            for p in g["params"]:
                if p.grad is None: continue
                self.state[p]["old"] = p.data.clone(); p.add_(p.grad * scale)
        self.zero_grad()
    @torch.no_grad()
    def second_step(self):
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is not None: p.data = self.state[p]["old"]
        self.base.step(); self.zero_grad()
    @torch.no_grad()
    def step(self, closure): closure = torch.enable_grad()(closure); self.first_step(); closure(); self.second_step()
dev = torch.device("cuda"); model = resnet18(num_classes=10); model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False); model.maxpool = nn.Identity(); model.to(dev)
opt = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.1, momentum=0.9, weight_decay=5e-4); loss_fn = nn.CrossEntropyLoss(); X, Y = torch.randn(2560, 3, 32, 32), torch.randint(0, 10, (2560,))
for epoch in range(3):
    correct = 0
    for i in range(0, len(X), 128):
        x, y = X[i:i + 128].to(dev), Y[i:i + 128].to(dev)
        def closure(): l = loss_fn(model(x), y); l.backward(); return l
        out = model(x); loss = loss_fn(out, y); loss.backward(); opt.step(closure); correct += out.argmax(1).eq(y).sum().item()
    print(epoch, f"{correct / len(X):.2%}")
