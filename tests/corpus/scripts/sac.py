"""Soft actor-critic: three optimizers, small networks, a replay buffer on the GPU."""
import copy, torch, torch.nn as nn, torch.nn.functional as F
device = torch.device("cuda"); S, A, B = 17, 6, 256
def mlp(i, o): return nn.Sequential(nn.Linear(i, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, o))
actor, q1, q2 = mlp(S, 2 * A).to(device), mlp(S + A, 1).to(device), mlp(S + A, 1).to(device); t1, t2 = copy.deepcopy(q1).requires_grad_(False), copy.deepcopy(q2).requires_grad_(False); log_alpha = torch.zeros(1, requires_grad=True, device=device)
oa, oq, ol = torch.optim.Adam(actor.parameters(), 3e-4), torch.optim.Adam([*q1.parameters(), *q2.parameters()], 3e-4), torch.optim.Adam([log_alpha], 3e-4)
buffer = {k: torch.randn(100_000, d, device=device) for k, d in (("s", S), ("a", A), ("r", 1), ("n", S))}
def act(s):
    mu, std = actor(s).chunk(2, -1); std = std.clamp(-5, 2).exp(); u = mu + std * torch.randn_like(mu); a = torch.tanh(u)
    logp = (-0.5 * ((u - mu) / std) ** 2 - std.log() - 0.919).sum(-1, keepdim=True) - torch.log(1 - a ** 2 + 1e-6).sum(-1, keepdim=True); return a, logp
for i in range(400):
    k = torch.randint(0, 100_000, (B,), device=device); s, a, r, n = (buffer[x][k] for x in "sarn")
    with torch.no_grad(): na, nl = act(n); y = r + 0.99 * (torch.min(t1(torch.cat((n, na), 1)), t2(torch.cat((n, na), 1))) - log_alpha.exp() * nl)
    x = torch.cat((s, a), 1); lq = F.mse_loss(q1(x), y) + F.mse_loss(q2(x), y); oq.zero_grad(); lq.backward(); oq.step()
    pa, pl = act(s); x = torch.cat((s, pa), 1); la = (log_alpha.exp().detach() * pl - torch.min(q1(x), q2(x))).mean(); oa.zero_grad(); la.backward(); oa.step()
    ll = -(log_alpha * (pl + (-A)).detach()).mean(); ol.zero_grad(); ll.backward(); ol.step()
    with torch.no_grad():
        for t, q in ((t1, q1), (t2, q2)):
            for a_, b_ in zip(t.parameters(), q.parameters()): a_.mul_(0.995).add_(b_, alpha=0.005)
