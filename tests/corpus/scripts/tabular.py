import torch, torch.nn as nn
class FTTransformer(nn.Module):
    def __init__(self, numeric=12, cards=(24, 7, 1000, 52, 16), d=192, layers=4):
        super().__init__(); self.w, self.b = nn.Parameter(torch.randn(numeric, d) * 0.02), nn.Parameter(torch.zeros(numeric, d)); self.cats = nn.ModuleList([nn.Embedding(c, d) for c in cards]); self.cls = nn.Parameter(torch.zeros(1, 1, d)); self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 8, 256, 0.1, "gelu", batch_first=True, norm_first=True), layers, enable_nested_tensor=False); self.head = nn.Sequential(nn.LayerNorm(d), nn.ReLU(), nn.Linear(d, 1))
    def forward(self, num, cat): x = torch.cat([self.cls.expand(len(num), -1, -1), num.unsqueeze(-1) * self.w + self.b, torch.stack([e(cat[:, i]) for i, e in enumerate(self.cats)], 1)], 1); return self.head(self.enc(x)[:, 0]).squeeze(-1)
data = torch.utils.data.TensorDataset(torch.randn(40000, 12), torch.stack([torch.randint(0, c, (40000,)) for c in (24, 7, 1000, 52, 16)], 1), torch.rand(40000).round()); loader = torch.utils.data.DataLoader(data, batch_size=1024, shuffle=True, drop_last=True)
model = FTTransformer().cuda(); opt = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=1e-5); crit = nn.BCEWithLogitsLoss()
for epoch in range(2):
    for num, cat, y in loader: loss = crit(model(num.cuda(), cat.cuda()), y.cuda()); opt.zero_grad(); loss.backward(); opt.step()
    print("epoch", epoch, loss.item())
