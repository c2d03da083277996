"""A GAN whose critic steps three times for each step of the generator."""
import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
G = nn.Sequential(nn.Linear(100, 256), nn.ReLU(), nn.Linear(256, 784), nn.Tanh()).to(dev)
D = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)).to(dev)
og = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999)); od = torch.optim.RMSprop(D.parameters(), lr=1e-4)
dl = DataLoader(TensorDataset(torch.randn(6000, 784), torch.randint(0, 10, (6000,))), 64, shuffle=True, num_workers=8, pin_memory=True, drop_last=True)
for epoch in range(3):
    for i, (x, _) in enumerate(dl):
        x = x.to(dev, non_blocking=True)
        od.zero_grad()
        z = torch.randn(x.size(0), 100, device=dev)
        ld = -D(x).mean() + D(G(z).detach()).mean()
        ld.backward(); od.step()
        for p in D.parameters(): p.data.clamp_(-0.01, 0.01)
        if i % 3 == 0:
            og.zero_grad(); lg = -D(G(z)).mean(); lg.backward(); og.step()
            print(f"[{epoch}/{i}] D {ld.item():.4f} G {lg:.4f}", ld.detach().cpu().numpy())
