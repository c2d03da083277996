"""SchNet: energies of molecules and forces as their gradient, so the loss needs second derivatives."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Softplus(nn.Module):
    def forward(self, x):
        return F.softplus(x) - 0.6931471805599453


class Interaction(nn.Module):
    def __init__(self, d, gaussians):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(gaussians, d), Softplus(), nn.Linear(d, d))
        self.inp = nn.Linear(d, d, bias=False)
        self.out = nn.Sequential(nn.Linear(d, d), Softplus(), nn.Linear(d, d))

    def forward(self, x, i, j, rbf, cut):
        w = self.filter(rbf) * cut.unsqueeze(-1)
        message = self.inp(x)[j] * w
        return self.out(torch.zeros_like(x).index_add(0, i, message))


class SchNet(nn.Module):
    def __init__(self, d=128, layers=6, gaussians=50, cutoff=6.0):
        super().__init__()
        self.embed, self.cutoff = nn.Embedding(100, d, padding_idx=0), cutoff
        self.register_buffer("offset", torch.linspace(0, cutoff, gaussians))
        self.width = -0.5 / (cutoff / (gaussians - 1)) ** 2
        self.layers = nn.ModuleList(Interaction(d, gaussians) for _ in range(layers))
        self.head = nn.Sequential(nn.Linear(d, d // 2), Softplus(), nn.Linear(d // 2, 1))

    def forward(self, z, pos, i, j, batch, n):
        dist = (pos[i] - pos[j]).norm(dim=-1)
        rbf = torch.exp(self.width * (dist.unsqueeze(-1) - self.offset) ** 2)
        cut = 0.5 * (torch.cos(dist * torch.pi / self.cutoff) + 1)
        x = self.embed(z)
        for layer in self.layers:
            x = x + layer(x, i, j, rbf, cut)
        return torch.zeros(n, device=pos.device).index_add(0, batch, self.head(x).squeeze(-1))


def molecules(n=256, atoms=21):
    z, pos = torch.randint(1, 10, (n * atoms,)), torch.randn(n * atoms, 3) * 2
    a, b = torch.meshgrid(torch.arange(atoms), torch.arange(atoms), indexing="ij")
    pair = torch.stack([a.flatten(), b.flatten()])[:, (a != b).flatten()]
    edges = (pair.unsqueeze(1) + (torch.arange(n) * atoms).view(1, -1, 1)).reshape(2, -1)
    return z, pos, edges[0], edges[1], torch.arange(n).repeat_interleave(atoms), torch.randn(n), torch.randn(n * atoms, 3)


model = SchNet().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, amsgrad=True)
for step in range(60):
    z, pos, i, j, batch, energy, force = (t.to("cuda") for t in molecules())
    pos.requires_grad_(True)
    found = model(z, pos, i, j, batch, 256)
    f = -torch.autograd.grad(found.sum(), pos, create_graph=True)[0]
    loss = 0.01 * F.mse_loss(found, energy) + 0.99 * F.mse_loss(f, force)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
