import random, torch, torch.nn as nn, torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
class CNNLayerNorm(nn.Module):
    def __init__(self, n): super().__init__(); self.norm = nn.LayerNorm(n)
    def forward(self, x): return self.norm(x.transpose(2, 3).contiguous()).transpose(2, 3).contiguous()
class ResidualCNN(nn.Module):
    def __init__(self, c, n): super().__init__(); self.n1, self.n2 = CNNLayerNorm(n), CNNLayerNorm(n); self.c1, self.c2 = nn.Conv2d(c, c, 3, 1, 1), nn.Conv2d(c, c, 3, 1, 1); self.d = nn.Dropout(0.1)
    def forward(self, x): r = x; x = self.c1(self.d(F.gelu(self.n1(x)))); x = self.c2(self.d(F.gelu(self.n2(x)))); return x + r
class BiGRU(nn.Module):
    def __init__(self, i, h, first): super().__init__(); self.gru = nn.GRU(i, h, batch_first=first, bidirectional=True); self.norm = nn.LayerNorm(i); self.d = nn.Dropout(0.1)
    def forward(self, x): return self.d(self.gru(F.gelu(self.norm(x)))[0])
class Speech(nn.Module):
    def __init__(self, rnn=512, feats=128, classes=29): super().__init__(); f = feats // 2; self.cnn = nn.Conv2d(1, 32, 3, 2, 1); self.res = nn.Sequential(*[ResidualCNN(32, f) for _ in range(3)]); self.fc = nn.Linear(f * 32, rnn); self.rnn = nn.Sequential(*[BiGRU(rnn if i == 0 else 2 * rnn, rnn, i == 0) for i in range(5)]); self.cls = nn.Sequential(nn.Linear(2 * rnn, rnn), nn.GELU(), nn.Dropout(0.1), nn.Linear(rnn, classes))
    def forward(self, x): x = self.res(self.cnn(x)); b, c, f, t = x.size(); return self.cls(self.rnn(self.fc(x.view(b, c * f, t).transpose(1, 2))))
def batch(n=20):
    specs, labels, il, ll = [], [], [], []
    for _ in range(n): t = 1200; s = torch.randn(t, 128); l = torch.randint(1, 28, (random.Random(4).randint(100, 150),)); specs.append(s); labels.append(l); il.append(s.shape[0] // 2); ll.append(len(l))
    return pad_sequence(specs, batch_first=True).unsqueeze(1).transpose(2, 3), pad_sequence(labels, batch_first=True), il, ll
device = torch.device("cuda"); model = Speech().to(device); opt = torch.optim.AdamW(model.parameters(), 5e-4); crit = nn.CTCLoss(blank=28).to(device); sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=5e-4, steps_per_epoch=40, epochs=1, anneal_strategy="linear"); print("Num Model Parameters", sum(p.nelement() for p in model.parameters()))
for i in range(38):
    s, l, il, ll = batch(); s, l = s.to(device), l.to(device); opt.zero_grad(); out = F.log_softmax(model(s), dim=2).transpose(0, 1); loss = crit(out, l, il, ll); loss.backward(); opt.step(); sched.step(); print("Train [{}]\tLoss: {:.6f}".format(i, loss.item()))
