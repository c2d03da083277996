"""An actor and critic in one network: five steps in sixteen environments for each update."""
import numpy as np, torch, torch.nn as nn
from torch.distributions import Categorical
class AC(nn.Module):
    def __init__(s): super().__init__(); s.f = nn.Sequential(nn.Linear(4, 64), nn.ReLU()); s.pi = nn.Linear(64, 2); s.v = nn.Linear(64, 1)
    def forward(s, x): h = s.f(x); return Categorical(logits=s.pi(h)), s.v(h).squeeze(-1)
net = AC().cuda(); opt = torch.optim.RMSprop(net.parameters(), 7e-4, alpha=0.99, eps=1e-5)
obs = np.zeros((16, 4), np.float32)
def env(a): return np.random.randn(16, 4).astype(np.float32), np.random.randn(16).astype(np.float32), (np.random.rand(16) < 0.05)
for upd in range(20):
    lp, vs, rs, ms, en = [], [], [], [], []
    for _ in range(5):
        d, v = net(torch.from_numpy(obs).cuda()); a = d.sample()
        obs, r, done = env(a.cpu().numpy())
        lp.append(d.log_prob(a)); vs.append(v); en.append(d.entropy()); rs.append(torch.from_numpy(r).cuda()); ms.append(torch.from_numpy(1 - done.astype(np.float32)).cuda())
    with torch.no_grad(): _, R = net(torch.from_numpy(obs).cuda())
    ret = []
    for r, m in zip(reversed(rs), reversed(ms)): R = r + 0.99 * R * m; ret.insert(0, R)
    ret = torch.cat(ret); adv = ret - torch.cat(vs)
    loss = -(torch.cat(lp) * adv.detach()).mean() + 0.5 * adv.pow(2).mean() - 0.01 * torch.cat(en).mean()
    opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(net.parameters(), 0.5); opt.step()
    if upd % 5 == 0: print(f"{upd}: {loss.item():.3f}")
