import torch, torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv, SAGEConv, GCNConv, global_mean_pool
torch.manual_seed(1); N, E = 30000, 300000; data = Data(x=torch.randn(N, 128), edge_index=torch.randint(0, N, (2, E)), y=torch.randint(0, 47, (N,))); data.train_mask = torch.zeros(N, dtype=torch.bool); data.train_mask[:20000] = True
class Net(torch.nn.Module):
    def __init__(self): super().__init__(); self.c1 = SAGEConv(128, 256); self.c2 = GCNConv(256, 256); self.c3 = GATv2Conv(256, 47, heads=2, concat=False); self.bn = torch.nn.BatchNorm1d(256)
    def forward(self, x, ei): x = F.relu(self.bn(self.c1(x, ei))); x = F.dropout(x, p=0.5, training=self.training); x = self.c2(x, ei).relu(); return self.c3(x, ei)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu"); model, data = Net().to(device), data.to(device); optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(1, 41):
    model.train(); optimizer.zero_grad(); out = model(data.x, data.edge_index); loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask]); loss.backward(); optimizer.step(); print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}")
