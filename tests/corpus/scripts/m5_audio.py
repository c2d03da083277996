import torch, torch.nn as nn, torch.nn.functional as F
class M5(nn.Module):
    def __init__(self, out=35, c=64):
        super().__init__(); self.conv1 = nn.Conv1d(1, c, 80, stride=4); self.bn1 = nn.BatchNorm1d(c); self.conv2 = nn.Conv1d(c, c, 3); self.bn2 = nn.BatchNorm1d(c); self.conv3 = nn.Conv1d(c, 2 * c, 3); self.bn3 = nn.BatchNorm1d(2 * c); self.conv4 = nn.Conv1d(2 * c, 2 * c, 3); self.bn4 = nn.BatchNorm1d(2 * c); self.fc = nn.Linear(2 * c, out)
    def forward(self, x):
        for conv, bn in ((self.conv1, self.bn1), (self.conv2, self.bn2), (self.conv3, self.bn3), (self.conv4, self.bn4)): x = F.max_pool1d(F.relu(bn(conv(x))), 4)
        return F.log_softmax(self.fc(x.mean(-1)), dim=-1)
model = M5().to("cuda"); opt = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4); sched = torch.optim.lr_scheduler.StepLR(opt, 20, 0.1); losses = []
for batch in range(80):
    data, target = torch.randn(256, 1, 16000).to("cuda"), torch.randint(0, 35, (256,)).to("cuda"); loss = F.nll_loss(model(data), target); opt.zero_grad(); loss.backward(); opt.step(); losses.append(loss.item())
    if batch % 20 == 0: print(f"[{batch}] loss {loss.item():.6f}")
