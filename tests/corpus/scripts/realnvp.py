import torch, torch.nn as nn
class Coupling(nn.Module):
    def __init__(self, d, h, flip): super().__init__(); self.flip = flip; self.net = nn.Sequential(nn.Linear(d // 2, h), nn.LeakyReLU(), nn.Linear(h, h), nn.LeakyReLU(), nn.Linear(h, d))
    def forward(self, x):
        a, b = x.chunk(2, 1); a, b = (b, a) if self.flip else (a, b); s, t = self.net(a).chunk(2, 1); s = torch.tanh(s); b = b * s.exp() + t; return torch.cat((b, a) if self.flip else (a, b), 1), s.sum(1)
class Flow(nn.Module):
    def __init__(self, d=64, h=512, n=12): super().__init__(); self.c = nn.ModuleList(Coupling(d, h, i % 2 == 1) for i in range(n)); self.register_buffer("mean", torch.zeros(d)); self.register_buffer("one", torch.ones(d))
    def log_prob(self, x):
        total = 0
        for c in self.c: x, l = c(x); total = total + l
        return torch.distributions.Normal(self.mean, self.one).log_prob(x).sum(1) + total
flow = Flow().to("cuda"); opt = torch.optim.Adam(flow.parameters(), 1e-4)
for i in range(80):
    loss = -flow.log_prob(torch.randn(4096, 64).to("cuda")).mean(); opt.zero_grad(); loss.backward(); opt.step()
    if i % 20 == 0: print(loss.item())
