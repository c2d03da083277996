import torch, torch.nn as nn
def knn(x, k): return torch.cdist(x, x).topk(k, largest=False).indices
def gather(x, idx): b = torch.arange(x.shape[0], device=x.device)[:, None, None]; return x[b, idx]
class Layer(nn.Module):
    def __init__(self, d): super().__init__(); self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d); self.pos = nn.Sequential(nn.Linear(3, d), nn.ReLU(), nn.Linear(d, d)); self.w = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d)); self.norm = nn.LayerNorm(d)
    def forward(self, x, p, idx): pos = self.pos(p[:, :, None] - gather(p, idx)); a = self.w(self.q(x)[:, :, None] - gather(self.k(x), idx) + pos).softmax(2); return self.norm(x + (a * (gather(self.v(x), idx) + pos)).sum(2))
class Net(nn.Module):
    def __init__(self, d=96, n=4, classes=13): super().__init__(); self.inp = nn.Linear(6, d); self.layers = nn.ModuleList([Layer(d) for _ in range(n)]); self.out = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Dropout(0.3), nn.Linear(d, classes))
    def forward(self, x):
        p = x[..., :3].contiguous(); idx = knn(p, 16); h = self.inp(x)
        for l in self.layers: h = l(h, p, idx)
        return self.out(h)
net = Net().cuda(); opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for i in range(45):
    x, y = torch.randn(8, 2048, 6).cuda(), torch.randint(0, 13, (8, 2048)).cuda(); loss = nn.functional.cross_entropy(net(x).reshape(-1, 13), y.reshape(-1)); opt.zero_grad(); loss.backward(); opt.step()
    if i % 20 == 0: print(i, loss.item())
