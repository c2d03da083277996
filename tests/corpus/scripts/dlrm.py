import torch, torch.nn as nn
class DLRM(nn.Module):
    def __init__(self, tables=26, rows=40000, d=64):
        super().__init__(); self.emb = nn.ModuleList([nn.EmbeddingBag(rows, d, mode="sum") for _ in range(tables)]); self.bot = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, d), nn.ReLU()); n = tables + 1; self.register_buffer("ij", torch.tril_indices(n, n, -1)); self.top = nn.Sequential(nn.Linear(d + n * (n - 1) // 2, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))
    def forward(self, dense, idx): x = self.bot(dense); z = torch.stack([x] + [e(idx[:, i]) for i, e in enumerate(self.emb)], 1); dots = torch.bmm(z, z.transpose(1, 2))[:, self.ij[0], self.ij[1]]; return self.top(torch.cat([x, dots], 1)).squeeze(1)
model = DLRM().to("cuda"); opt = torch.optim.Adagrad(model.parameters(), lr=0.01); crit = nn.BCEWithLogitsLoss()
for step in range(50):
    dense, idx, y = torch.rand(2048, 13).to("cuda"), torch.randint(0, 40000, (2048, 26, 4)).to("cuda"), torch.randint(0, 2, (2048,)).float().to("cuda")
    loss = crit(model(dense, idx), y); opt.zero_grad(); loss.backward(); opt.step()
    if step % 25 == 0: print(step, loss.item())
