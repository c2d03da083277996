# Node classification: graph attention without a graph library
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0); N, E, D, C = 20000, 400000, 256, 40; device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
edge_index = torch.randint(0, N, (2, E)); edge_index = torch.cat([edge_index, edge_index.flip(0), torch.arange(N).repeat(2, 1)], 1); x = torch.randn(N, D); y = torch.randint(0, C, (N,)); train_mask = torch.rand(N) < 0.6
class GATLayer(nn.Module):
    def __init__(self, i, o, heads, concat=True, drop=0.5):
        super().__init__(); self.h, self.o, self.concat, self.drop = heads, o, concat, drop; self.lin = nn.Linear(i, heads * o, bias=False); self.a = nn.Parameter(torch.empty(1, heads, o)); self.b = nn.Parameter(torch.empty(1, heads, o)); self.bias = nn.Parameter(torch.zeros(heads * o if concat else o)); nn.init.xavier_uniform_(self.a); nn.init.xavier_uniform_(self.b)
    def forward(self, x, ei):
        n = x.size(0); h = self.lin(F.dropout(x, self.drop, self.training)).view(n, self.h, self.o); s, d = ei
        e = F.leaky_relu((h * self.a).sum(-1)[s] + (h * self.b).sum(-1)[d], 0.2); m = torch.full((n, self.h), -1e9, device=x.device).scatter_reduce(0, d[:, None].expand_as(e), e, "amax"); w = (e - m[d]).exp(); z = torch.zeros(n, self.h, device=x.device).index_add_(0, d, w); w = F.dropout(w / (z[d] + 1e-16), self.drop, self.training)
        out = torch.zeros(n, self.h, self.o, device=x.device).index_add_(0, d, h[s] * w.unsqueeze(-1)); return (out.flatten(1) if self.concat else out.mean(1)) + self.bias
class GAT(nn.Module):
    def __init__(self): super().__init__(); self.l1 = GATLayer(D, 32, 4); self.l2 = GATLayer(128, 32, 4); self.l3 = GATLayer(128, C, 4, concat=False)
    def forward(self, x, ei): x = F.elu(self.l1(x, ei)); x = F.elu(self.l2(x, ei)); return self.l3(x, ei).log_softmax(-1)
model = GAT().to(device); x, y, edge_index, train_mask = x.to(device), y.to(device), edge_index.to(device), train_mask.to(device); opt = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
def train(): model.train(); opt.zero_grad(); out = model(x, edge_index); loss = F.nll_loss(out[train_mask], y[train_mask]); loss.backward(); opt.step(); return float(loss)
@torch.no_grad()
def test(): model.eval(); p = model(x, edge_index).argmax(-1); return [int((p[m] == y[m]).sum()) / int(m.sum()) for m in (train_mask, ~train_mask)]
for epoch in range(1, 41):
    loss = train()
    if epoch % 10 == 0: print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Train: {test()[0]:.4f}")
