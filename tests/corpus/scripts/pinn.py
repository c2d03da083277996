# Burgers' equation: second derivatives of the network in the loss
import torch, torch.nn as nn
device = "cuda"; torch.manual_seed(0); net = nn.Sequential(nn.Linear(2, 128), nn.Tanh(), *[m for _ in range(6) for m in (nn.Linear(128, 128), nn.Tanh())], nn.Linear(128, 1)).to(device); opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x0 = torch.rand(2000, 2, device=device); u0 = torch.sin(x0[:, :1])
for i in range(60):
    p = torch.rand(20000, 2, device=device, requires_grad=True); u = net(p); g = torch.autograd.grad(u, p, torch.ones_like(u), create_graph=True)[0]; uxx = torch.autograd.grad(g[:, :1], p, torch.ones_like(g[:, :1]), create_graph=True)[0][:, :1]
    loss = ((g[:, 1:] + u * g[:, :1] - 0.01 / torch.pi * uxx) ** 2).mean() + ((net(x0) - u0) ** 2).mean(); opt.zero_grad(); loss.backward(); opt.step()
    if i % 20 == 0: print(i, loss.item())
