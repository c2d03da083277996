"""Distributional DQN with a dueling head; the replay buffer of frames lives on the GPU."""
import copy, random
import torch
from torch import nn
import torch.nn.functional as F

ATOMS, VMIN, VMAX, ACTIONS, BATCH = 51, -10.0, 10.0, 18, 1024
device = torch.device("cuda")
support = torch.linspace(VMIN, VMAX, ATOMS, device=device)
delta = (VMAX - VMIN) / (ATOMS - 1)

class NoisyLinear(nn.Module):
    def __init__(self, i, o, std=0.5):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.empty(o, i)), nn.Parameter(torch.empty(o))
        self.ws, self.bs = nn.Parameter(torch.full((o, i), std / i ** 0.5)), nn.Parameter(torch.full((o,), std / o ** 0.5))
        self.register_buffer("we", torch.zeros(o, i)); self.register_buffer("be", torch.zeros(o))
        nn.init.uniform_(self.w, -1 / i ** 0.5, 1 / i ** 0.5); nn.init.uniform_(self.b, -1 / i ** 0.5, 1 / i ** 0.5)
    def reset(self):
        f = lambda n: (lambda x: x.sign() * x.abs().sqrt())(torch.randn(n, device=self.w.device))
        a, b = f(self.w.shape[1]), f(self.w.shape[0])
        self.we.copy_(torch.outer(b, a)); self.be.copy_(b)
    def forward(self, x):
        return F.linear(x, self.w + self.ws * self.we, self.b + self.bs * self.be) if self.training else F.linear(x, self.w, self.b)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(4, 64, 8, 4), nn.ReLU(), nn.Conv2d(64, 128, 4, 2), nn.ReLU(), nn.Conv2d(128, 128, 3), nn.ReLU(), nn.Flatten())
        self.v = nn.ModuleList([NoisyLinear(128 * 49, 512), NoisyLinear(512, ATOMS)])
        self.a = nn.ModuleList([NoisyLinear(128 * 49, 512), NoisyLinear(512, ATOMS * ACTIONS)])
    def forward(self, x, log=False):
        x = self.conv(x.float().div(255))
        v = self.v[1](F.relu(self.v[0](x))).view(-1, 1, ATOMS); a = self.a[1](F.relu(self.a[0](x))).view(-1, ACTIONS, ATOMS)
        q = v + a - a.mean(1, keepdim=True)
        return F.log_softmax(q, 2) if log else F.softmax(q, 2)
    def reset(self):
        for m in self.modules():
            if isinstance(m, NoisyLinear): m.reset()

online = Net().to(device); target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.Adam(online.parameters(), lr=6.25e-5, eps=1.5e-4)
SIZE = 20_000
frames = torch.zeros(SIZE, 4, 84, 84, dtype=torch.uint8, device=device)
actions, rewards, done = torch.zeros(SIZE, dtype=torch.long, device=device), torch.zeros(SIZE, device=device), torch.zeros(SIZE, device=device)
frames.random_(0, 256); actions.random_(0, ACTIONS); rewards.normal_()
for step in range(80):
    index = torch.randint(0, SIZE - 1, (BATCH,), device=device)
    s, ns, a, r, d = frames[index], frames[index + 1], actions[index], rewards[index], done[index]
    online.reset(); target.reset()
    with torch.no_grad():
        best = (online(ns) * support).sum(2).argmax(1)
        p = target(ns)[torch.arange(BATCH, device=device), best]
        tz = (r[:, None] + (1 - d[:, None]) * 0.99 ** 3 * support).clamp(VMIN, VMAX)
        b = (tz - VMIN) / delta; l, u = b.floor().long(), b.ceil().long()
        l[(u > 0) * (l == u)] -= 1; u[(l < ATOMS - 1) * (l == u)] += 1
        m = torch.zeros(BATCH, ATOMS, device=device); offset = torch.arange(0, BATCH * ATOMS, ATOMS, device=device)[:, None]
        m.view(-1).index_add_(0, (l + offset).view(-1), (p * (u.float() - b)).view(-1)); m.view(-1).index_add_(0, (u + offset).view(-1), (p * (b - l.float())).view(-1))
    logp = online(s, log=True)[torch.arange(BATCH, device=device), a]
    loss = -(m * logp).sum(1)
    opt.zero_grad(); loss.mean().backward(); nn.utils.clip_grad_norm_(online.parameters(), 10); opt.step()
    if step % 40 == 0: target.load_state_dict(online.state_dict()); print(step, loss.mean().item())
