import math, torch, torch.nn as nn
class Sine(nn.Module):
    def __init__(self, i, o, first=False, w=30.0): super().__init__(); self.w = w; self.lin = nn.Linear(i, o); b = 1 / i if first else math.sqrt(6 / i) / w; nn.init.uniform_(self.lin.weight, -b, b)
    def forward(self, x): return torch.sin(self.w * self.lin(x))
net = nn.Sequential(Sine(2, 256, True), Sine(256, 256), Sine(256, 256), Sine(256, 256), nn.Linear(256, 3)).cuda(); opt = torch.optim.Adam(net.parameters(), lr=1e-4); side = 256
grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, side), torch.linspace(-1, 1, side), indexing="ij"), -1).view(-1, 2).cuda(); image = torch.rand(side * side, 3).cuda()
for step in range(100):
    out = net(grid); loss = ((out - image) ** 2).mean(); opt.zero_grad(); loss.backward(); opt.step()
    if step % 25 == 0: print(step, loss.item())
