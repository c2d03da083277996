import torch, torch.nn as nn, numpy as np
device = "cuda" if torch.cuda.is_available() else "cpu"
class NeRF(nn.Module):
    def __init__(self, Lp=10, Ld=4, h=256):
        super().__init__(); self.Lp, self.Ld = Lp, Ld; p, d = 6 * Lp + 3, 6 * Ld + 3
        self.a = nn.Sequential(nn.Linear(p, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU()); self.b = nn.Sequential(nn.Linear(h + p, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, h + 1)); self.c = nn.Sequential(nn.Linear(h + d, h // 2), nn.ReLU(), nn.Linear(h // 2, 3), nn.Sigmoid())
    @staticmethod
    def enc(x, L):
        out = [x]
        for j in range(L): out += [torch.sin(2 ** j * x), torch.cos(2 ** j * x)]
        return torch.cat(out, dim=1)
    def forward(self, o, d): ex, ed = self.enc(o, self.Lp), self.enc(d, self.Ld); h = self.b(torch.cat((self.a(ex), ex), 1)); return self.c(torch.cat((h[:, :-1], ed), 1)), torch.relu(h[:, -1])
def transmittance(a): acc = torch.cumprod(a, 1); return torch.cat((torch.ones((acc.shape[0], 1), device=a.device), acc[:, :-1]), dim=-1)
def render(model, o, d, hn=2.0, hf=6.0, bins=192):
    t = torch.linspace(hn, hf, bins, device=o.device).expand(o.shape[0], bins); mid = (t[:, :-1] + t[:, 1:]) / 2.0; lo, up = torch.cat((t[:, :1], mid), -1), torch.cat((mid, t[:, -1:]), -1); t = lo + (up - lo) * torch.rand(t.shape, device=o.device); delta = torch.cat((t[:, 1:] - t[:, :-1], torch.tensor([1e10], device=o.device).expand(o.shape[0], 1)), -1)
    x = o.unsqueeze(1) + t.unsqueeze(2) * d.unsqueeze(1); dirs = d.expand(bins, d.shape[0], 3).transpose(0, 1); col, sig = model(x.reshape(-1, 3), dirs.reshape(-1, 3)); col, sig = col.reshape(x.shape), sig.reshape(x.shape[:-1]); alpha = 1 - torch.exp(-sig * delta); w = transmittance(1 - alpha).unsqueeze(2) * alpha.unsqueeze(2); c = (w * col).sum(1); return c + 1 - w.sum(-1).sum(-1).unsqueeze(-1)
rays = torch.from_numpy(np.random.rand(200_000, 9).astype(np.float32)); model = NeRF().to(device); opt = torch.optim.Adam(model.parameters(), lr=5e-4); sched = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[2, 4, 8], gamma=0.5); losses = []
for batch in torch.utils.data.DataLoader(rays, batch_size=2048, shuffle=True):
    o, d, gt = batch[:, :3].to(device), batch[:, 3:6].to(device), batch[:, 6:].to(device); loss = ((gt - render(model, o, d)) ** 2).sum(); opt.zero_grad(); loss.backward(); opt.step(); losses.append(loss.item())
sched.step(); print(np.mean(losses))
