import torch, torch.nn as nn, torch.nn.functional as F
from torch.distributions import Normal, kl_divergence
class RSSM(nn.Module):
    def __init__(self, a=6, s=32, h=256, e=1024):
        super().__init__(); self.h, self.s = h, s; self.inp = nn.Linear(s + a, h); self.cell = nn.GRUCell(h, h); self.prior = nn.Sequential(nn.Linear(h, h), nn.ELU(), nn.Linear(h, 2 * s)); self.post = nn.Sequential(nn.Linear(h + e, h), nn.ELU(), nn.Linear(h, 2 * s))
    def forward(self, emb, act):
        T, B, _ = emb.shape; h, s = emb.new_zeros(B, self.h), emb.new_zeros(B, self.s); feats, priors, posts = [], [], []
        for t in range(T):
            h = self.cell(F.elu(self.inp(torch.cat([s, act[t]], -1))), h); pm, ps = self.prior(h).chunk(2, -1); qm, qs = self.post(torch.cat([h, emb[t]], -1)).chunk(2, -1); q = Normal(qm, F.softplus(qs) + 0.1); s = q.rsample(); feats.append(torch.cat([h, s], -1)); priors.append((pm, F.softplus(ps) + 0.1)); posts.append((qm, F.softplus(qs) + 0.1))
        return torch.stack(feats), [torch.stack(x) for x in zip(*priors)], [torch.stack(x) for x in zip(*posts)]
enc = nn.Sequential(nn.Conv2d(3, 32, 4, 2), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 128, 4, 2), nn.ReLU(), nn.Conv2d(128, 256, 4, 2), nn.ReLU(), nn.Flatten()).cuda()
dec = nn.Sequential(nn.Linear(288, 1024), nn.Unflatten(1, (1024, 1, 1)), nn.ConvTranspose2d(1024, 128, 5, 2), nn.ReLU(), nn.ConvTranspose2d(128, 64, 5, 2), nn.ReLU(), nn.ConvTranspose2d(64, 32, 6, 2), nn.ReLU(), nn.ConvTranspose2d(32, 3, 6, 2)).cuda()
rssm, reward = RSSM().cuda(), nn.Sequential(nn.Linear(288, 256), nn.ELU(), nn.Linear(256, 1)).cuda(); params = [p for m in (enc, dec, rssm, reward) for p in m.parameters()]; opt = torch.optim.Adam(params, lr=6e-4, eps=1e-7)
for it in range(40):
    obs, act, rew = torch.rand(30, 32, 3, 64, 64).cuda() - 0.5, torch.randn(30, 32, 6).cuda(), torch.randn(30, 32).cuda(); emb = enc(obs.flatten(0, 1)).unflatten(0, (30, 32)); feat, (pm, ps), (qm, qs) = rssm(emb, act)
    rec = dec(feat.flatten(0, 1)).unflatten(0, (30, 32)); kl = kl_divergence(Normal(qm, qs), Normal(pm, ps)).sum(-1).mean().clamp(min=3.0); loss = ((rec - obs) ** 2).sum((2, 3, 4)).mean() + ((reward(feat).squeeze(-1) - rew) ** 2).mean() + kl
    opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(params, 100.0); opt.step()
    if it % 10 == 0: print(it, loss.item(), kl.item())
