# Recommender: large tables stay in host memory, the towers run on the GPU
import torch, torch.nn as nn, numpy as np
ROWS, DIM, TABLES, BATCH = 200_000, 64, 8, 4096
tables = nn.ModuleList(nn.EmbeddingBag(ROWS, DIM, mode="sum", sparse=True) for _ in range(TABLES))
class Dense(nn.Module):
    def __init__(self): super().__init__(); self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, DIM), nn.ReLU()); n = TABLES + 1; self.top = nn.Sequential(nn.Linear(DIM + n * (n - 1) // 2, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1)); self.register_buffer("li", torch.tensor([i for i in range(n) for j in range(i)])); self.register_buffer("lj", torch.tensor([j for i in range(n) for j in range(i)]))
    def forward(self, x, e): b = self.bottom(x); T = torch.cat([b.unsqueeze(1), e], 1); Z = torch.bmm(T, T.transpose(1, 2))[:, self.li, self.lj]; return self.top(torch.cat([b, Z], 1)).squeeze(1)
dense = Dense().cuda(); o1, o2 = torch.optim.SGD(tables.parameters(), lr=0.1), torch.optim.Adagrad(dense.parameters(), lr=0.01); bce = nn.BCEWithLogitsLoss()
for i in range(40):
    idx = torch.from_numpy(np.random.zipf(1.2, (TABLES, BATCH, 4)) % ROWS); x = torch.randn(BATCH, 13, device="cuda"); y = (torch.rand(BATCH) < 0.25).float().cuda()
    e = torch.stack([t(idx[k]) for k, t in enumerate(tables)], 1).cuda(); loss = bce(dense(x, e), y); o1.zero_grad(); o2.zero_grad(); loss.backward(); o1.step(); o2.step()
    if i % 10 == 0: print(i, loss.item())
