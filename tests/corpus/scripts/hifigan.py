"""HiFi-GAN: a vocoder with multi-period and multi-scale discriminators."""
import itertools
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

SLOPE = 0.1


class ResBlock(nn.Module):
    def __init__(self, c, k, dilations=(1, 3, 5)):
        super().__init__()
        self.a = nn.ModuleList(weight_norm(nn.Conv1d(c, c, k, 1, (k * d - d) // 2, d)) for d in dilations)
        self.b = nn.ModuleList(weight_norm(nn.Conv1d(c, c, k, 1, k // 2)) for _ in dilations)

    def forward(self, x):
        for a, b in zip(self.a, self.b):
            x = b(F.leaky_relu(a(F.leaky_relu(x, SLOPE)), SLOPE)) + x
        return x


class Generator(nn.Module):
    def __init__(self, c=512, rates=(8, 8, 2, 2), kernels=(16, 16, 4, 4), res=(3, 7, 11)):
        super().__init__()
        self.pre = weight_norm(nn.Conv1d(80, c, 7, 1, 3))
        self.ups, self.res, self.n = nn.ModuleList(), nn.ModuleList(), len(res)
        for i, (r, k) in enumerate(zip(rates, kernels)):
            self.ups.append(weight_norm(nn.ConvTranspose1d(c // 2**i, c // 2 ** (i + 1), k, r, (k - r) // 2)))
            self.res.extend(ResBlock(c // 2 ** (i + 1), k) for k in res)
        self.post = weight_norm(nn.Conv1d(c // 2 ** len(rates), 1, 7, 1, 3))

    def forward(self, x):
        x = self.pre(x)
        for i, up in enumerate(self.ups):
            x = up(F.leaky_relu(x, SLOPE))
            x = sum(self.res[i * self.n + j](x) for j in range(self.n)) / self.n
        return torch.tanh(self.post(F.leaky_relu(x)))


class Period(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p, chans = p, (1, 32, 128, 512, 1024)
        self.convs = nn.ModuleList(weight_norm(nn.Conv2d(i, o, (5, 1), (3, 1), (2, 0))) for i, o in zip(chans, chans[1:]))
        self.convs.append(weight_norm(nn.Conv2d(1024, 1024, (5, 1), 1, (2, 0))))
        self.post = weight_norm(nn.Conv2d(1024, 1, (3, 1), 1, (1, 0)))

    def forward(self, x):
        b, c, t = x.shape
        if t % self.p:
            x = F.pad(x, (0, self.p - t % self.p), "reflect")
        x, maps = x.view(b, c, -1, self.p), []
        for conv in self.convs:
            x = F.leaky_relu(conv(x), SLOPE)
            maps.append(x)
        x = self.post(x)
        return x.flatten(1), maps + [x]


class Scale(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.convs = nn.ModuleList(norm(nn.Conv1d(i, o, k, s, k // 2, groups=g)) for i, o, k, s, g in ((1, 128, 15, 1, 1), (128, 128, 41, 2, 4), (128, 256, 41, 2, 16), (256, 512, 41, 4, 16), (512, 1024, 41, 4, 16), (1024, 1024, 41, 1, 16), (1024, 1024, 5, 1, 1)))
        self.post = norm(nn.Conv1d(1024, 1, 3, 1, 1))

    def forward(self, x):
        maps = []
        for conv in self.convs:
            x = F.leaky_relu(conv(x), SLOPE)
            maps.append(x)
        x = self.post(x)
        return x.flatten(1), maps + [x]


class Discriminators(nn.Module):
    def __init__(self):
        super().__init__()
        self.periods = nn.ModuleList(Period(p) for p in (2, 3, 5, 7, 11))
        self.scales = nn.ModuleList([Scale(spectral_norm), Scale(weight_norm), Scale(weight_norm)])

    def forward(self, x):
        found = [p(x) for p in self.periods]
        for i, s in enumerate(self.scales):
            if i:
                x = F.avg_pool1d(x, 4, 2, 2)
            found.append(s(x))
        return found


window, bank = torch.hann_window(1024).cuda(), torch.rand(80, 513).cuda()


def mel(y):
    y = F.pad(y.unsqueeze(1), (384, 384), mode="reflect").squeeze(1)
    spec = torch.stft(y, 1024, 256, 1024, window, center=False, return_complex=True)
    spec = torch.sqrt(torch.view_as_real(spec).pow(2).sum(-1) + 1e-9)
    return torch.log(torch.clamp(bank @ spec, min=1e-5))


gen, disc = Generator().cuda(), Discriminators().cuda()
opt_g = torch.optim.AdamW(gen.parameters(), 2e-4, betas=(0.8, 0.99))
opt_d = torch.optim.AdamW(itertools.chain(disc.parameters()), 2e-4, betas=(0.8, 0.99))
for step in range(40):
    y = torch.rand(16, 1, 8192).cuda() * 2 - 1
    m = mel(y.squeeze(1))
    fake = gen(m)
    opt_d.zero_grad()
    loss_d = sum(((1 - r) ** 2).mean() + (f**2).mean() for (r, _), (f, _) in zip(disc(y), disc(fake.detach())))
    loss_d.backward()
    opt_d.step()
    opt_g.zero_grad()
    loss_mel = F.l1_loss(m, mel(fake.squeeze(1))) * 45
    real, made = disc(y), disc(fake)
    loss_fm = 2 * sum((a - b).abs().mean() for (_, ra), (_, fa) in zip(real, made) for a, b in zip(ra, fa))
    loss_g = sum(((1 - f) ** 2).mean() for f, _ in made) + loss_fm + loss_mel
    loss_g.backward()
    opt_g.step()
    if step % 10 == 0:
        print(f"{step} D {loss_d.item():.3f} G {loss_g.item():.3f} mel {loss_mel.item() / 45:.3f}")
