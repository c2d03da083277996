# Improved Training of Wasserstein GANs, 64x64
import argparse
import torch, torch.nn as nn, torch.autograd as autograd
from torch.utils.data import DataLoader, Dataset
p = argparse.ArgumentParser()
p.add_argument("--batch_size", type=int, default=64); p.add_argument("--n_critic", type=int, default=5)
p.add_argument("--latent_dim", type=int, default=128); p.add_argument("--lr", type=float, default=2e-4); p.add_argument("--n_epochs", type=int, default=5)
opt = p.parse_args()
Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
class Faces(Dataset):
    def __len__(self): return 64 * 40
    def __getitem__(self, i): return torch.rand(3, 64, 64) * 2 - 1, i % 10
class Generator(nn.Module):
    def __init__(self, d=128):
        super().__init__(); self.first = nn.Linear(opt.latent_dim, 8 * d * 16)
        def up(i, o): return [nn.Upsample(scale_factor=2), nn.Conv2d(i, o, 3, 1, 1), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, inplace=True)]
        self.net = nn.Sequential(*up(8 * d, 4 * d), *up(4 * d, 2 * d), *up(2 * d, d), *up(d, d), nn.Conv2d(d, 3, 3, 1, 1), nn.Tanh())
    def forward(self, z): return self.net(self.first(z).view(z.size(0), -1, 4, 4))
class Critic(nn.Module):
    def __init__(self, d=128):
        super().__init__()
        def down(i, o): return [nn.Conv2d(i, o, 5, 2, 2), nn.InstanceNorm2d(o, affine=True), nn.LeakyReLU(0.2)]
        self.net = nn.Sequential(nn.Conv2d(3, d, 5, 2, 2), nn.LeakyReLU(0.2), *down(d, 2 * d), *down(2 * d, 4 * d), *down(4 * d, 8 * d)); self.out = nn.Linear(8 * d * 16, 1)
    def forward(self, x): return self.out(self.net(x).flatten(1))
def gradient_penalty(D, real, fake):
    alpha = Tensor(real.size(0), 1, 1, 1).uniform_()
    x = (alpha * real + (1 - alpha) * fake).requires_grad_(True); d = D(x)
    g = autograd.grad(outputs=d, inputs=x, grad_outputs=torch.ones_like(d), create_graph=True, retain_graph=True, only_inputs=True)[0]
    return ((g.view(g.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()
G, D = Generator(), Critic()
if torch.cuda.is_available(): G.cuda(); D.cuda()
optG = torch.optim.Adam(G.parameters(), lr=opt.lr, betas=(0.0, 0.9)); optD = torch.optim.Adam(D.parameters(), lr=opt.lr, betas=(0.0, 0.9))
loader = DataLoader(Faces(), batch_size=opt.batch_size, shuffle=True, drop_last=True)
done = 0
for epoch in range(opt.n_epochs):
    for i, (imgs, _) in enumerate(loader):
        real = imgs.type(Tensor); optD.zero_grad()
        z = torch.randn(imgs.shape[0], opt.latent_dim, device=real.device); fake = G(z)
        d_loss = -D(real).mean() + D(fake.detach()).mean() + 10 * gradient_penalty(D, real.data, fake.data)
        d_loss.backward(); optD.step(); optG.zero_grad()
        if i % opt.n_critic == 0:
            fake = G(z); g_loss = -D(fake).mean(); g_loss.backward(); optG.step()
            print("[Epoch %d/%d] [Batch %d/%d] [D loss: %f] [G loss: %f]" % (epoch, opt.n_epochs, i, len(loader), d_loss.item(), g_loss.item())); done += opt.n_critic
