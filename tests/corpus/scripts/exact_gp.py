import math, torch
X, y = torch.rand(3000, 4).cuda(), torch.randn(3000).cuda(); log_l, log_s, log_n = (torch.zeros((), device="cuda", requires_grad=True) for _ in range(3)); opt = torch.optim.Adam([log_l, log_s, log_n], lr=0.05)
for i in range(50):
    K = log_s.exp() * torch.exp(-0.5 * torch.cdist(X, X).pow(2) / log_l.exp() ** 2) + (log_n.exp() + 1e-2) * torch.eye(3000, device="cuda"); L = torch.linalg.cholesky(K); alpha = torch.cholesky_solve(y[:, None], L)
    loss = 0.5 * (y @ alpha.squeeze(1)) + torch.diagonal(L).log().sum() + 1500 * math.log(2 * math.pi); opt.zero_grad(); loss.backward(); opt.step()
    if i % 10 == 0: print(i, loss.item(), log_l.exp().item())
