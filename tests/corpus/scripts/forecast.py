import torch, torch.nn as nn
class Forecaster(nn.Module):
    def __init__(self, features=7, d=128, patch=16, n=32, horizon=96): super().__init__(); self.patch = patch; self.proj = nn.Linear(patch, d); self.pos = nn.Parameter(torch.zeros(1, n, d)); self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 8, 256, dropout=0.2, activation="gelu", batch_first=True, norm_first=True), 3); self.head = nn.Linear(n * d, horizon)
    def forward(self, x):
        b, t, c = x.shape; mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5; z = ((x - mean) / std).permute(0, 2, 1).reshape(b * c, t // self.patch, self.patch); y = self.head(self.enc(self.proj(z) + self.pos).flatten(1)).view(b, c, -1).permute(0, 2, 1); return y * std + mean
model = Forecaster().to("cuda"); opt = torch.optim.Adam(model.parameters(), 1e-3); best = float("inf")
for step in range(60):
    x, y = torch.randn(64, 512, 7).to("cuda"), torch.randn(64, 96, 7).to("cuda"); loss = nn.functional.mse_loss(model(x), y); opt.zero_grad(); loss.backward(); nn.utils.clip_grad_value_(model.parameters(), 0.5); opt.step(); value = loss.item()
    if value < best: best = value
print("best", best)
