import torch, torch.nn as nn, torch.nn.functional as F, torchvision
class Depth(nn.Module):
    def __init__(self):
        super().__init__(); r = torchvision.models.resnet34(weights=None); self.stem = nn.Sequential(r.conv1, r.bn1, r.relu); self.stages = nn.ModuleList([nn.Sequential(r.maxpool, r.layer1), r.layer2, r.layer3, r.layer4]); c = [64, 64, 128, 256, 512]; self.ups = nn.ModuleList([nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(a + b, b, 3), nn.ELU(True)) for a, b in zip(c[:0:-1], c[-2::-1])]); self.out = nn.Conv2d(64, 1, 3, padding=1)
    def forward(self, x):
        f = [self.stem(x)]
        for s in self.stages: f.append(s(f[-1]))
        y = f[-1]
        for u, skip in zip(self.ups, f[-2::-1]): y = u(torch.cat([F.interpolate(y, size=skip.shape[2:], mode="bilinear", align_corners=False), skip], 1))
        return torch.sigmoid(F.interpolate(self.out(y), scale_factor=2, mode="bilinear", align_corners=False))
def ssim(x, y): p = lambda z: F.avg_pool2d(z, 3, 1, 1); mx, my = p(x), p(y); sx, sy, sxy = p(x * x) - mx ** 2, p(y * y) - my ** 2, p(x * y) - mx * my; return (1 - (2 * mx * my + 1e-4) * (2 * sxy + 9e-4) / ((mx ** 2 + my ** 2 + 1e-4) * (sx + sy + 9e-4))).clamp(0, 2) / 2
net = Depth().cuda(); opt = torch.optim.Adam(net.parameters(), 1e-4); ys, xs = torch.meshgrid(torch.linspace(-1, 1, 192), torch.linspace(-1, 1, 640), indexing="ij"); grid = torch.stack([xs, ys], -1).cuda()
for i in range(45):
    left, right = torch.rand(8, 3, 192, 640).cuda(), torch.rand(8, 3, 192, 640).cuda(); d = net(left) * 0.3; g = grid.expand(8, -1, -1, -1) - torch.cat([d, torch.zeros_like(d)], 1).permute(0, 2, 3, 1); warped = F.grid_sample(right, g, padding_mode="border", align_corners=True)
    smooth = (d[..., 1:] - d[..., :-1]).abs().mean() + (d[..., 1:, :] - d[..., :-1, :]).abs().mean(); loss = 0.85 * ssim(warped, left).mean() + 0.15 * (warped - left).abs().mean() + 1e-3 * smooth; opt.zero_grad(); loss.backward(); opt.step()
    if i % 20 == 0: print(i, loss.item())
