import torch, torch.nn as nn, torch.nn.functional as F
class Layer(nn.Module):
    def __init__(self, c, s, d): super().__init__(); self.d = d; self.f, self.g = nn.Conv1d(c, c, 2, dilation=d), nn.Conv1d(c, c, 2, dilation=d); self.r, self.s = nn.Conv1d(c, c, 1), nn.Conv1d(c, s, 1)
    def forward(self, x): y = F.pad(x, (self.d, 0)); y = torch.tanh(self.f(y)) * torch.sigmoid(self.g(y)); return x + self.r(y), self.s(y)
class WaveNet(nn.Module):
    def __init__(self, q=256, c=64, s=256, blocks=3, layers=10): super().__init__(); self.inp = nn.Embedding(q, c); self.l = nn.ModuleList(Layer(c, s, 2 ** i) for _ in range(blocks) for i in range(layers)); self.o1, self.o2 = nn.Conv1d(s, s, 1), nn.Conv1d(s, q, 1)
    def forward(self, x):
        x = self.inp(x).transpose(1, 2); skip = 0
        for l in self.l: x, s = l(x); skip = skip + s
        return self.o2(F.relu(self.o1(F.relu(skip))))
net = WaveNet().to("cuda:0"); opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(40):
    a = torch.randint(0, 256, (8, 8001)).to("cuda:0"); out = net(a[:, :-1]); loss = F.cross_entropy(out, a[:, 1:]); opt.zero_grad(); loss.backward(); opt.step()
    if i % 10 == 0: print(i, loss.item())
