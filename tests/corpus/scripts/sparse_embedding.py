import torch, torch.nn as nn
class Rec(nn.Module):
    def __init__(s): super().__init__(); s.u = nn.Embedding(10000, 32, sparse=True); s.i = nn.EmbeddingBag(5000, 32, mode='mean', sparse=True); s.mlp = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
    def forward(s, u, items, offs): return s.mlp(torch.cat([s.u(u), s.i(items, offs)], 1)).squeeze(1)
m = Rec().to('cuda')
so = torch.optim.SparseAdam(list(m.u.parameters()) + list(m.i.parameters()), 1e-3); do = torch.optim.Adam(m.mlp.parameters())
for step in range(20):
    u = torch.randint(0, 10000, (256,), device='cuda'); it = torch.randint(0, 5000, (1024,), device='cuda'); off = torch.arange(0, 1024, 4, device='cuda'); y = torch.rand(256, device='cuda').round()
    loss = nn.functional.binary_cross_entropy_with_logits(m(u, it, off), y); so.zero_grad(); do.zero_grad(); loss.backward(); so.step(); do.step()
    if step % 5 == 0: print(loss.item())
