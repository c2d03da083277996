import torch, torch.nn as nn
def down(i, o, norm=True): return nn.Sequential(nn.LeakyReLU(0.2), nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o) if norm else nn.Identity())
def up(i, o, drop=False): return nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.Dropout(0.5) if drop else nn.Identity())
class UNet(nn.Module):
    def __init__(self, w=64):
        super().__init__(); self.first = nn.Conv2d(3, w, 4, 2, 1); c = [w, 2 * w, 4 * w, 8 * w, 8 * w, 8 * w, 8 * w]; self.down = nn.ModuleList([down(a, b) for a, b in zip(c, c[1:])]); self.mid = nn.Sequential(nn.LeakyReLU(0.2), nn.Conv2d(8 * w, 8 * w, 4, 2, 1), up(8 * w, 8 * w)); self.up = nn.ModuleList([up(2 * a, b, i < 3) for i, (a, b) in enumerate(zip(c[::-1], c[::-1][1:]))]); self.last = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(2 * w, 3, 4, 2, 1), nn.Tanh())
    def forward(self, x):
        skips = [self.first(x)]
        for d in self.down: skips.append(d(skips[-1]))
        y = self.mid(skips[-1])
        for u in self.up: y = u(torch.cat([y, skips.pop()], 1))
        return self.last(torch.cat([y, skips.pop()], 1))
G = UNet().cuda(); D = nn.Sequential(nn.Conv2d(6, 64, 4, 2, 1), down(64, 128), down(128, 256), nn.LeakyReLU(0.2), nn.Conv2d(256, 512, 4, 1, 1, bias=False), nn.BatchNorm2d(512), nn.LeakyReLU(0.2), nn.Conv2d(512, 1, 4, 1, 1)).cuda()
og, od = torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999)), torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999)); bce, l1 = nn.BCEWithLogitsLoss(), nn.L1Loss()
for i in range(45):
    a, b = torch.rand(8, 3, 256, 256).cuda(), torch.rand(8, 3, 256, 256).cuda(); fake = G(a)
    real, no = D(torch.cat([a, b], 1)), D(torch.cat([a, fake.detach()], 1)); ld = 0.5 * (bce(real, torch.ones_like(real)) + bce(no, torch.zeros_like(no))); od.zero_grad(); ld.backward(); od.step()
    p = D(torch.cat([a, fake], 1)); lg = bce(p, torch.ones_like(p)) + 100 * l1(fake, b); og.zero_grad(); lg.backward(); og.step()
    if i % 20 == 0: print(f"[{i}] D {ld.item():.3f} G {lg.item():.3f}")
