"""A radiance field over a multiresolution hash grid, as instant-ngp has it, in plain PyTorch."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class HashGrid(nn.Module):
    def __init__(self, levels=16, features=2, log2=19, low=16, high=2048):
        super().__init__()
        growth = math.exp((math.log(high) - math.log(low)) / (levels - 1))
        self.sizes = [int(low * growth**i) for i in range(levels)]
        self.mask = 2**log2 - 1
        self.tables = nn.ModuleList(nn.Embedding(2**log2, features) for _ in range(levels))
        for t in self.tables:
            nn.init.uniform_(t.weight, -1e-4, 1e-4)
        corners = [[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]
        self.register_buffer("corners", torch.tensor(corners))
        self.register_buffer("primes", torch.tensor([1, 2654435761, 805459861]))

    def forward(self, x):
        found = []
        for size, table in zip(self.sizes, self.tables):
            scaled = x * size
            base = scaled.floor().long()
            frac = scaled - base
            at = base.unsqueeze(1) + self.corners
            h = at * self.primes
            index = (h[..., 0] ^ h[..., 1] ^ h[..., 2]) & self.mask
            w = torch.where(self.corners.bool(), frac.unsqueeze(1), 1 - frac.unsqueeze(1)).prod(-1, keepdim=True)
            found.append((table(index) * w).sum(1))
        return torch.cat(found, -1)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = HashGrid()
        self.sigma = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))
        self.rgb = nn.Sequential(nn.Linear(16 + 3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3), nn.Sigmoid())

    def forward(self, x, d):
        h = self.sigma(self.grid(x.reshape(-1, 3)))
        rgb = self.rgb(torch.cat([h, d.reshape(-1, 3)], -1))
        return F.softplus(h[:, 0]), rgb


def render(field, origin, direction, samples=96):
    n = origin.shape[0]
    t = torch.linspace(0.05, 1.7, samples, device=origin.device).expand(n, samples)
    t = t + torch.rand_like(t) * 1.65 / samples
    points = (origin[:, None] + direction[:, None] * t[..., None]).clamp(0, 1)
    sigma, rgb = field(points, direction[:, None].expand_as(points))
    sigma, rgb = sigma.view(n, samples), rgb.view(n, samples, 3)
    delta = torch.cat([t[:, 1:] - t[:, :-1], torch.full((n, 1), 1e10, device=t.device)], 1)
    alpha = 1 - torch.exp(-sigma * delta)
    through = torch.cumprod(torch.cat([torch.ones(n, 1, device=t.device), 1 - alpha + 1e-10], 1), 1)[:, :-1]
    return ((alpha * through).unsqueeze(-1) * rgb).sum(1)


field = Field().to("cuda")
opt = torch.optim.Adam([{"params": field.grid.parameters(), "lr": 1e-2}, {"params": list(field.sigma.parameters()) + list(field.rgb.parameters()), "lr": 1e-3, "weight_decay": 1e-6}], betas=(0.9, 0.99), eps=1e-15)
rays = torch.rand(200_000, 6).to("cuda")
target = torch.rand(200_000, 3).to("cuda")
for step in range(60):
    pick = torch.randint(0, rays.shape[0], (8192,), device="cuda")
    o, d = rays[pick].split(3, -1)
    loss = F.mse_loss(render(field, o, F.normalize(d, dim=-1)), target[pick])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"{step} psnr {-10 * math.log10(max(loss.item(), 1e-8)):.2f}")
