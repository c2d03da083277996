import torch, torch.nn as nn, torch.nn.functional as F
class TNet(nn.Module):
    def __init__(self, k): super().__init__(); self.k = k; self.conv = nn.ModuleList([nn.Conv1d(k, 64, 1), nn.Conv1d(64, 128, 1), nn.Conv1d(128, 1024, 1)]); self.fc = nn.ModuleList([nn.Linear(1024, 512), nn.Linear(512, 256), nn.Linear(256, k * k)]); self.bn = nn.ModuleList([nn.BatchNorm1d(c) for c in (64, 128, 1024, 512, 256)])
    def forward(self, x):
        b = x.size(0)
        for c, n in zip(self.conv, self.bn[:3]): x = F.relu(n(c(x)))
        x = x.max(2)[0]; x = F.relu(self.bn[3](self.fc[0](x))); x = F.relu(self.bn[4](self.fc[1](x))); return self.fc[2](x).view(b, self.k, self.k) + torch.eye(self.k, device=x.device)
class PointNet(nn.Module):
    def __init__(self, classes=40): super().__init__(); self.t1, self.t2 = TNet(3), TNet(64); self.c = nn.ModuleList([nn.Conv1d(3, 64, 1), nn.Conv1d(64, 128, 1), nn.Conv1d(128, 1024, 1)]); self.b = nn.ModuleList([nn.BatchNorm1d(64), nn.BatchNorm1d(128), nn.BatchNorm1d(1024)]); self.head = nn.Sequential(nn.Linear(1024, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.3), nn.Linear(512, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, classes))
    def forward(self, x):
        m1 = self.t1(x); x = torch.bmm(x.transpose(2, 1), m1).transpose(2, 1); x = F.relu(self.b[0](self.c[0](x))); m2 = self.t2(x); x = torch.bmm(x.transpose(2, 1), m2).transpose(2, 1)
        x = F.relu(self.b[1](self.c[1](x))); x = self.b[2](self.c[2](x)); return self.head(x.max(2)[0]), m2
model = PointNet().cuda(); opt = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.999)); sched = torch.optim.lr_scheduler.StepLR(opt, 20, 0.5)
for i in range(45):
    p, t = torch.randn(64, 3, 2048).cuda(), torch.randint(0, 40, (64,)).cuda(); out, m = model(p)
    loss = F.cross_entropy(out, t) + 0.001 * torch.norm(torch.eye(64, device="cuda") - m @ m.transpose(1, 2), dim=(1, 2)).mean(); opt.zero_grad(); loss.backward(); opt.step(); sched.step()
print(f"{loss:.3f}")
