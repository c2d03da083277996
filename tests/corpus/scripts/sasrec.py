import torch, torch.nn as nn
class SASRec(nn.Module):
    def __init__(self, items=50000, d=64, L=200, heads=2, blocks=2):
        super().__init__(); self.item, self.pos = nn.Embedding(items + 1, d, padding_idx=0), nn.Embedding(L, d); self.drop = nn.Dropout(0.2); self.an, self.fn = nn.ModuleList([nn.LayerNorm(d) for _ in range(blocks)]), nn.ModuleList([nn.LayerNorm(d) for _ in range(blocks)]); self.att = nn.ModuleList([nn.MultiheadAttention(d, heads, 0.2, batch_first=True) for _ in range(blocks)]); self.ff = nn.ModuleList([nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Dropout(0.2), nn.Linear(d, d)) for _ in range(blocks)]); self.last = nn.LayerNorm(d)
    def forward(self, seq, pos, neg):
        x = self.drop(self.item(seq) * 8.0 + self.pos(torch.arange(seq.shape[1], device=seq.device))); mask = torch.triu(torch.ones(seq.shape[1], seq.shape[1], dtype=torch.bool, device=seq.device), 1); keep = (seq != 0).unsqueeze(-1)
        for n1, a, n2, f in zip(self.an, self.att, self.fn, self.ff): q = n1(x); x = q + a(q, x, x, attn_mask=mask, need_weights=False)[0]; x = (n2(x) + f(n2(x))) * keep
        x = self.last(x); return (x * self.item(pos)).sum(-1), (x * self.item(neg)).sum(-1)
model = SASRec().cuda(); opt = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98)); bce = nn.BCEWithLogitsLoss()
for step in range(60):
    seq, pos, neg = (torch.randint(1, 50001, (128, 200)).cuda() for _ in range(3)); p, n = model(seq, pos, neg); loss = bce(p, torch.ones_like(p)) + bce(n, torch.zeros_like(n)); opt.zero_grad(); loss.backward(); opt.step()
    if step % 20 == 0: print(f"loss {loss.item():.4f}")
