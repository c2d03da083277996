"""A KL autoencoder for latent diffusion: perceptual loss through a frozen VGG and a patch discriminator."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.models import vgg16


class Res(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(32, i, eps=1e-6), nn.Conv2d(i, o, 3, padding=1)
        self.n2, self.c2 = nn.GroupNorm(32, o, eps=1e-6), nn.Conv2d(o, o, 3, padding=1)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        h = self.c1(F.silu(self.n1(x)))
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class Attn(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = nn.GroupNorm(32, c, eps=1e-6)
        self.q, self.k, self.v, self.o = (nn.Conv2d(c, c, 1) for _ in range(4))

    def forward(self, x):
        h = self.norm(x)
        b, c, y, w = h.shape
        q, k, v = (f(h).reshape(b, c, y * w) for f in (self.q, self.k, self.v))
        a = torch.bmm(q.transpose(1, 2), k) * c**-0.5
        return x + self.o(torch.bmm(v, a.softmax(2).transpose(1, 2)).reshape(b, c, y, w))


class Down(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = nn.Conv2d(c, c, 3, 2)

    def forward(self, x):
        return self.c(F.pad(x, (0, 1, 0, 1)))


def up(c):
    return nn.Sequential(nn.Upsample(scale_factor=2.0), nn.Conv2d(c, c, 3, padding=1))


class KL(nn.Module):
    def __init__(self, ch=128, mult=(1, 2, 4, 4), z=4):
        super().__init__()
        enc, c = [nn.Conv2d(3, ch, 3, padding=1)], ch
        for i, m in enumerate(mult):
            enc += [Res(c, ch * m), Res(ch * m, ch * m)]
            c = ch * m
            if i < len(mult) - 1:
                enc.append(Down(c))
        enc += [Res(c, c), Attn(c), Res(c, c), nn.GroupNorm(32, c), nn.SiLU(), nn.Conv2d(c, 2 * z, 3, padding=1), nn.Conv2d(2 * z, 2 * z, 1)]
        dec = [nn.Conv2d(z, z, 1), nn.Conv2d(z, c, 3, padding=1), Res(c, c), Attn(c), Res(c, c)]
        for i, m in reversed(list(enumerate(mult))):
            dec += [Res(c, ch * m), Res(ch * m, ch * m), Res(ch * m, ch * m)]
            c = ch * m
            if i:
                dec.append(up(c))
        dec += [nn.GroupNorm(32, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1)]
        self.encoder, self.decoder = nn.Sequential(*enc), nn.Sequential(*dec)

    def forward(self, x):
        mean, logvar = self.encoder(x).chunk(2, 1)
        logvar = logvar.clamp(-30, 20)
        z = mean + torch.exp(0.5 * logvar) * torch.randn_like(mean)
        return self.decoder(z), 0.5 * (mean.pow(2) + logvar.exp() - 1 - logvar).sum((1, 2, 3)).mean()


class Perceptual(nn.Module):
    def __init__(self):
        super().__init__()
        f = vgg16(weights=None).features
        self.slices = nn.ModuleList([f[:4], f[4:9], f[9:16], f[16:23], f[23:30]])
        self.requires_grad_(False)

    def forward(self, a, b):
        loss = 0.0
        for s in self.slices:
            a, b = s(a), s(b)
            loss = loss + (F.normalize(a, dim=1) - F.normalize(b, dim=1)).pow(2).sum(1).mean()
        return loss


def patch(c=64):
    layers = [nn.Conv2d(3, c, 4, 2, 1), nn.LeakyReLU(0.2, True)]
    for i in (1, 2):
        layers += [nn.Conv2d(c * i, c * 2 * i, 4, 2, 1, bias=False), nn.BatchNorm2d(c * 2 * i), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers, nn.Conv2d(4 * c, 1, 4, 1, 1))


vae, lpips, disc = KL().cuda(), Perceptual().cuda().eval(), patch().cuda()
logvar = nn.Parameter(torch.zeros((), device="cuda"))
opt = torch.optim.Adam([*vae.parameters(), logvar], lr=4.5e-6, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(disc.parameters(), lr=4.5e-6, betas=(0.5, 0.9))
for step in range(30):
    x = torch.randn(4, 3, 256, 256, device="cuda")
    rec, kl = vae(x)
    nll = ((x - rec).abs() + lpips(x, rec)) / logvar.exp() + logvar
    nll = nll.sum() / len(x)
    g = -disc(rec).mean()
    last = vae.decoder[-1].weight
    weight = torch.autograd.grad(nll, last, retain_graph=True)[0].norm() / (torch.autograd.grad(g, last, retain_graph=True)[0].norm() + 1e-4)
    loss = nll + 1e-6 * kl + 0.5 * weight.clamp(0, 1e4).detach() * g
    opt.zero_grad()
    loss.backward()
    opt.step()
    loss_d = 0.5 * (F.relu(1 - disc(x.detach())).mean() + F.relu(1 + disc(rec.detach())).mean())
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    if step % 10 == 0:
        print(step, loss.item(), loss_d.item())
