import torch, torch.nn as nn, torch.nn.functional as F
def block(i, o): return nn.Sequential(nn.Conv3d(i, o, 3, padding=1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01, inplace=True), nn.Conv3d(o, o, 3, padding=1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01, inplace=True))
class UNet3D(nn.Module):
    def __init__(self, w=(16, 32, 64, 128)): super().__init__(); self.e = nn.ModuleList(block(i, o) for i, o in zip((1, *w), w)); self.u = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, 2) for a, b in reversed(list(zip(w, w[1:])))); self.d = nn.ModuleList(block(2 * a, a) for a in reversed(w[:-1])); self.out = nn.Conv3d(w[0], 3, 1)
    def forward(self, x):
        kept = []
        for i, e in enumerate(self.e): x = e(x if i == 0 else F.max_pool3d(x, 2)); kept.append(x)
        kept.pop()
        for u, d in zip(self.u, self.d): x = d(torch.cat((u(x), kept.pop()), 1))
        return self.out(x)
net = UNet3D().cuda(); opt = torch.optim.AdamW(net.parameters(), 1e-3); scaler = torch.amp.GradScaler()
for i in range(40):
    x, y = torch.randn(2, 1, 96, 96, 96).cuda(), torch.randint(0, 3, (2, 96, 96, 96)).cuda()
    with torch.autocast("cuda", torch.float16): out = net(x); loss = F.cross_entropy(out, y)
    scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad()
    if i % 10 == 0: print(i, float(loss))
