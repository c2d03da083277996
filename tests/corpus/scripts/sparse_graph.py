import torch, torch.nn as nn, torch.nn.functional as F, numpy as np, time
class GraphConv(nn.Module):
    def __init__(self, i, o, use_bias=True):
        super().__init__()
        self.kernel = nn.Parameter(torch.Tensor(i, o)); nn.init.xavier_normal_(self.kernel)
        self.bias = None
        if use_bias: self.bias = nn.Parameter(torch.Tensor(o)); nn.init.zeros_(self.bias)
    def forward(self, x, adj):
        support = torch.mm(x, self.kernel); out = torch.spmm(adj, support)
        if self.bias is not None: out = out + self.bias
        return out
class GCN(nn.Module):
    def __init__(self, i, h, o, p=0.1):
        super().__init__(); self.gc1 = GraphConv(i, h); self.gc2 = GraphConv(h, o); self.dropout = nn.Dropout(p)
    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj)); x = self.dropout(x); return F.log_softmax(self.gc2(x, adj), dim=1)
n, f, c = 2708, 1433, 7
edges = np.random.randint(0, n, (2, 5000))
values = torch.ones(edges.shape[1])
adj = torch.sparse_coo_tensor(torch.from_numpy(edges), values, (n, n)).coalesce()
features = torch.rand(n, f); labels = torch.randint(0, c, (n,))
idx = torch.randperm(n); idx_train, idx_val, idx_test = idx[1500:], idx[1000:1500], idx[:1000]
device = torch.device('cuda')
gcn = GCN(f, 16, c).to(device)
adj, features, labels = adj.to(device), features.to(device), labels.to(device)
idx_train, idx_val = idx_train.to(device), idx_val.to(device)
opt = torch.optim.Adam(gcn.parameters(), lr=0.01, weight_decay=5e-4); criterion = nn.NLLLoss()
for epoch in range(20):
    t = time.time(); gcn.train(); opt.zero_grad()
    out = gcn(features, adj); loss = criterion(out[idx_train], labels[idx_train]); loss.backward(); opt.step()
    gcn.eval()
    with torch.no_grad():
        out = gcn(features, adj); acc = out[idx_val].argmax(dim=1).eq(labels[idx_val]).float().mean()
    print(f'Epoch: {epoch:04d} ({(time.time()-t):.4f}s) loss_train: {loss:.4f} acc_val: {acc:.4f}')
