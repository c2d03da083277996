import torch, torch.nn as nn
text = torch.randint(0, 96, (400000,)); B, T = 100, 100
class CharRNN(nn.Module):
    def __init__(self, n=96, h=512, layers=2, p=0.5): super().__init__(); self.n = n; self.lstm = nn.LSTM(n, h, layers, dropout=p, batch_first=True); self.drop = nn.Dropout(p); self.fc = nn.Linear(h, n)
    def forward(self, x, hidden): out, hidden = self.lstm(x, hidden); return self.fc(self.drop(out).contiguous().view(-1, 512)), hidden
net = CharRNN().cuda(); opt = torch.optim.Adam(net.parameters(), lr=0.001); crit = nn.CrossEntropyLoss(); data = text[: B * (len(text) // B)].view(B, -1); h = (torch.zeros(2, B, 512).cuda(), torch.zeros(2, B, 512).cuda()); net.train()
for n in range(0, data.shape[1] - T - 1, 80):
    x, y = data[:, n:n + T], data[:, n + 1:n + T + 1]; x = nn.functional.one_hot(x, 96).float().cuda(); h = tuple(each.data for each in h); net.zero_grad(); out, h = net(x, h); loss = crit(out, y.reshape(-1).cuda()); loss.backward(); nn.utils.clip_grad_norm_(net.parameters(), 5); opt.step()
    if n % 800 == 0: print(n, f"Loss: {loss.item():.4f}")
