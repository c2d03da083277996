# N-BEATS for hourly electricity: doubly residual stacks over a large batch of windows, data kept on the GPU
import torch, torch.nn as nn, torch.nn.functional as F
BACK, AHEAD = 168, 24
class Block(nn.Module):
    def __init__(self, width, theta, basis=None):
        super().__init__(); self.fc = nn.Sequential(*[m for i in range(4) for m in (nn.Linear(BACK if i == 0 else width, width), nn.ReLU())]); self.basis = basis
        self.tb, self.tf = nn.Linear(width, theta, bias=False), nn.Linear(width, theta, bias=False)
        if basis is None: self.b, self.f = nn.Linear(theta, BACK), nn.Linear(theta, AHEAD)
        else:
            tb, tf = torch.arange(BACK).float() / BACK, torch.arange(AHEAD).float() / AHEAD
            make = (lambda t: torch.stack([t ** i for i in range(theta)])) if basis == "trend" else (lambda t: torch.cat([torch.stack([torch.cos(2 * torch.pi * i * t) for i in range(theta // 2)]), torch.stack([torch.sin(2 * torch.pi * i * t) for i in range(theta - theta // 2)])]))
            self.register_buffer("sb", make(tb)); self.register_buffer("sf", make(tf))
    def forward(self, x):
        h = self.fc(x); b, f = self.tb(h), self.tf(h)
        return (self.b(b), self.f(f)) if self.basis is None else (b @ self.sb, f @ self.sf)
class NBeats(nn.Module):
    def __init__(self): super().__init__(); self.blocks = nn.ModuleList([Block(1024, 4, "trend") for _ in range(3)] + [Block(2048, 24, "season") for _ in range(3)] + [Block(2048, 256) for _ in range(20)])
    def forward(self, x):
        total = torch.zeros(x.size(0), AHEAD, device=x.device)
        for block in self.blocks: b, f = block(x); x = x - b; total = total + f
        return total
series = torch.rand(370, 26_304, device="cuda"); model = NBeats().cuda(); opt = torch.optim.Adam(model.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.MultiStepLR(opt, [50, 100], 0.5); windows = torch.arange(BACK + AHEAD, device="cuda")
for step in range(80):
    row = torch.randint(0, 370, (4096,), device="cuda"); start = torch.randint(0, 26_304 - BACK - AHEAD, (4096, 1), device="cuda"); w = series[row[:, None], start + windows]
    x, y = w[:, :BACK], w[:, BACK:]; p = model(x); loss = (2 * (p - y).abs() / (p.abs() + y.abs() + 1e-8)).mean() + F.smooth_l1_loss(p, y)
    opt.zero_grad(); loss.backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step(); sched.step()
    if step % 20 == 0: print(step, loss.item())
