# Graph isomorphism network on batches of molecules: edges by index_add_, pooled per graph
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

class Molecules(Dataset):
    def __init__(self, n=8192):
        g = torch.Generator().manual_seed(3)
        self.x = [torch.randint(0, 100, (24, 3), generator=g) for _ in range(n // 16)]
        self.e = [torch.randint(0, 24, (2, 52), generator=g) for _ in range(n // 16)]
        self.a = [torch.randint(0, 6, (52, 2), generator=g) for _ in range(n // 16)]
        self.y = torch.randint(0, 2, (n, 128), generator=g).float()
        self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): j = i % len(self.x); return self.x[j], self.e[j], self.a[j], self.y[i]

def collate(rows):
    xs, es, at, ys, where, start = [], [], [], [], [], 0
    for k, (x, e, a, y) in enumerate(rows):
        xs.append(x); es.append(e + start); at.append(a); ys.append(y)
        where.append(torch.full((len(x),), k)); start += len(x)
    return torch.cat(xs), torch.cat(es, 1), torch.cat(at), torch.cat(where), torch.stack(ys)

class Conv(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1)); self.bond = nn.ModuleList(nn.Embedding(6, d) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.BatchNorm1d(2 * d), nn.ReLU(), nn.Linear(2 * d, d))
    def forward(self, x, edge, attr):
        src, dst = edge
        message = F.relu(x[src] + sum(b(attr[:, i]) for i, b in enumerate(self.bond)))
        out = torch.zeros_like(x).index_add_(0, dst, message)
        return self.mlp((1 + self.eps) * x + out)

class GIN(nn.Module):
    def __init__(self, d=300, layers=5, tasks=128):
        super().__init__()
        self.atom = nn.ModuleList(nn.Embedding(100, d) for _ in range(3))
        self.convs = nn.ModuleList(Conv(d) for _ in range(layers)); self.norms = nn.ModuleList(nn.BatchNorm1d(d) for _ in range(layers))
        self.virtual = nn.Embedding(1, d); self.vmlp = nn.ModuleList(nn.Sequential(nn.Linear(d, 2 * d), nn.BatchNorm1d(2 * d), nn.ReLU(), nn.Linear(2 * d, d), nn.BatchNorm1d(d), nn.ReLU()) for _ in range(layers - 1))
        self.out = nn.Linear(d, tasks)
    def forward(self, x, edge, attr, where, graphs):
        h = sum(a(x[:, i]) for i, a in enumerate(self.atom))
        v = self.virtual(torch.zeros(graphs, dtype=torch.long, device=h.device))
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            h = h + v[where]
            new = norm(conv(h, edge, attr))
            if i < len(self.vmlp): v = v + F.dropout(self.vmlp[i](torch.zeros_like(v).index_add_(0, where, h) + v), 0.5, self.training); new = F.relu(new)
            h = F.dropout(new, 0.5, self.training) + h
        count = torch.zeros(graphs, 1, device=h.device).index_add_(0, where, torch.ones(len(where), 1, device=h.device))
        return self.out(torch.zeros(graphs, h.size(1), device=h.device).index_add_(0, where, h) / count.clamp(min=1))

device = torch.device("cuda:0"); model = GIN().to(device); opt = torch.optim.Adam(model.parameters(), lr=1e-3); criterion = nn.BCEWithLogitsLoss()
for epoch in range(3):
    for i, batch in enumerate(DataLoader(Molecules(65536), batch_size=1024, collate_fn=collate, drop_last=True)):
        x, e, a, w, y = [t.to(device) for t in batch]
        p = model(x, e, a, w, y.size(0)); loss = criterion(p, y); opt.zero_grad(); loss.backward(); opt.step()
        if i % 10 == 0: print(epoch, i, float(loss))
