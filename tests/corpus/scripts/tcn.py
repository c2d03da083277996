import torch, torch.nn as nn
from torch.nn.utils.parametrizations import weight_norm
class Temporal(nn.Module):
    def __init__(self, i, o, k, d, p=0.2):
        super().__init__(); self.pad = (k - 1) * d; self.c1, self.c2 = weight_norm(nn.Conv1d(i, o, k, padding=self.pad, dilation=d)), weight_norm(nn.Conv1d(o, o, k, padding=self.pad, dilation=d)); self.drop = nn.Dropout(p); self.res = nn.Conv1d(i, o, 1) if i != o else None
    def forward(self, x): y = self.drop(torch.relu(self.c1(x)[:, :, :-self.pad].contiguous())); y = self.drop(torch.relu(self.c2(y)[:, :, :-self.pad].contiguous())); return torch.relu(y + (x if self.res is None else self.res(x)))
model = nn.Sequential(*[Temporal(88 if i == 0 else 150, 150, 5, 2 ** i) for i in range(5)], nn.Conv1d(150, 88, 1)).cuda(); opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(60):
    x = (torch.rand(32, 88, 600) < 0.05).float().cuda(); loss = nn.functional.binary_cross_entropy_with_logits(model(x[:, :, :-1]), x[:, :, 1:]); opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(model.parameters(), 0.2); opt.step()
    if step % 20 == 0: print(step, loss.item())
