import itertools, random, torch, torch.nn as nn
class Res(nn.Module):
    def __init__(self, c): super().__init__(); self.b = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c), nn.ReLU(True), nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c))
    def forward(self, x): return x + self.b(x)
def generator(w=64, n=6):
    m = [nn.ReflectionPad2d(3), nn.Conv2d(3, w, 7), nn.InstanceNorm2d(w), nn.ReLU(True)]
    for i in (1, 2): m += [nn.Conv2d(w * i, 2 * w * i, 3, 2, 1), nn.InstanceNorm2d(2 * w * i), nn.ReLU(True)]
    m += [Res(4 * w) for _ in range(n)]
    for i in (2, 1): m += [nn.ConvTranspose2d(2 * w * i, w * i, 3, 2, 1, 1), nn.InstanceNorm2d(w * i), nn.ReLU(True)]
    return nn.Sequential(*m, nn.ReflectionPad2d(3), nn.Conv2d(w, 3, 7), nn.Tanh())
def critic(w=64): return nn.Sequential(nn.Conv2d(3, w, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(w, 2 * w, 4, 2, 1), nn.InstanceNorm2d(2 * w), nn.LeakyReLU(0.2, True), nn.Conv2d(2 * w, 4 * w, 4, 2, 1), nn.InstanceNorm2d(4 * w), nn.LeakyReLU(0.2, True), nn.Conv2d(4 * w, 1, 4, 1, 1))
device = "cuda"; gab, gba, da, db = (m.to(device) for m in (generator(), generator(), critic(), critic())); mse, l1 = nn.MSELoss(), nn.L1Loss()
og = torch.optim.Adam(itertools.chain(gab.parameters(), gba.parameters()), 2e-4, (0.5, 0.999)); od = torch.optim.Adam(itertools.chain(da.parameters(), db.parameters()), 2e-4, (0.5, 0.999))
for i in range(45):
    a, b = torch.rand(2, 3, 256, 256).to(device) * 2 - 1, torch.rand(2, 3, 256, 256).to(device) * 2 - 1
    fb, fa = gab(a), gba(b); ra, rb = gba(fb), gab(fa)
    for p in itertools.chain(da.parameters(), db.parameters()): p.requires_grad = False
    og.zero_grad(); pa, pb = da(fa), db(fb); lg = mse(pa, torch.ones_like(pa)) + mse(pb, torch.ones_like(pb)) + 10 * (l1(ra, a) + l1(rb, b)) + 5 * (l1(gab(b), b) + l1(gba(a), a)); lg.backward(); og.step()
    for p in itertools.chain(da.parameters(), db.parameters()): p.requires_grad = True
    od.zero_grad(); ld = 0
    for d, real, fake in ((da, a, fa), (db, b, fb)): r, f = d(real), d(fake.detach()); ld = ld + 0.5 * (mse(r, torch.ones_like(r)) + mse(f, torch.zeros_like(f)))
    ld.backward(); od.step()
    if i % 20 == 0: print("G", lg.item(), "D", ld.item())
