import torch, torch.nn as nn, torchvision
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0): super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None: continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"]); grad = p.grad; state = self.state[p]
                if len(state) == 0: state["exp_avg"] = torch.zeros_like(p)
                m = state["exp_avg"]; b1, b2 = group["betas"]; update = m * b1 + grad * (1 - b1); p.add_(update.sign_(), alpha=-group["lr"]); m.mul_(b2).add_(grad, alpha=1 - b2)
net = torchvision.models.VisionTransformer(image_size=128, patch_size=16, num_layers=8, num_heads=6, hidden_dim=384, mlp_dim=1536, num_classes=200).cuda(); opt = Lion(net.parameters(), 1e-4, weight_decay=0.1); crit = nn.CrossEntropyLoss()
for i in range(40):
    x, y = torch.randn(128, 3, 128, 128).cuda(), torch.randint(0, 200, (128,)).cuda(); loss = crit(net(x), y); opt.zero_grad(); loss.backward(); opt.step()
    if i % 10 == 0: print(f"{i}: {loss.item():.3f}")
