import torch, torch.nn.functional as F
from torch_geometric.nn import GCNConv
n, e = 60_000, 600_000; torch.manual_seed(1)
x, edge, y = torch.randn(n, 128), torch.randint(0, n, (2, e)), torch.randint(0, 10, (n,))
class GCN(torch.nn.Module):
    def __init__(self, h=256): super().__init__(); self.c1, self.c2, self.c3 = GCNConv(128, h, normalize=False), GCNConv(h, h, normalize=False), GCNConv(h, 10, normalize=False); self.b1, self.b2 = torch.nn.BatchNorm1d(h), torch.nn.BatchNorm1d(h)
    def forward(self, x, edge):
        x = F.dropout(F.relu(self.b1(self.c1(x, edge))), 0.5, self.training); x = F.dropout(F.relu(self.b2(self.c2(x, edge))), 0.5, self.training); return self.c3(x, edge)
model = GCN().cuda(); x, edge, y = x.cuda(), edge.cuda(), y.cuda(); opt = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(50):
    model.train(); opt.zero_grad(); loss = F.cross_entropy(model(x, edge), y); loss.backward(); opt.step()
    if epoch % 10 == 0: print(epoch, loss.item())
