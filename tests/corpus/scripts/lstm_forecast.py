import torch, torch.nn as nn
from torch.utils.data import DataLoader, Dataset
class Windows(Dataset):
    def __init__(self, n=8000, look=168, ahead=24): self.s = torch.randn(n + look + ahead, 8); self.n, self.look, self.ahead = n, look, ahead
    def __len__(self): return self.n
    def __getitem__(self, i): return self.s[i:i + self.look], self.s[i + self.look:i + self.look + self.ahead, 0]
class Model(nn.Module):
    def __init__(self, h=256): super().__init__(); self.lstm = nn.LSTM(8, h, 2, batch_first=True, dropout=0.1); self.fc = nn.Sequential(nn.Linear(h, 128), nn.ReLU(), nn.Linear(128, 24))
    def forward(self, x): out, (h, c) = self.lstm(x); return self.fc(h[-1])
model = Model().to("cuda"); opt = torch.optim.Adam(model.parameters(), 1e-3); crit = nn.HuberLoss()
for epoch in range(2):
    model.train(); total = 0.0
    for x, y in DataLoader(Windows(), batch_size=256, shuffle=True): x, y = x.to("cuda"), y.to("cuda"); loss = crit(model(x), y); opt.zero_grad(); loss.backward(); opt.step(); total += loss.item()
    print(epoch, total)
