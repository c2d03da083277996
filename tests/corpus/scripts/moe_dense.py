# Mixture of experts with capacity, dispatched by einsum
import torch, torch.nn as nn, torch.nn.functional as F
D, E, C, L, B, T = 512, 8, 320, 6, 4, 512
class MoE(nn.Module):
    def __init__(self): super().__init__(); self.gate = nn.Linear(D, E, bias=False); self.w1, self.w2 = nn.Parameter(torch.randn(E, D, 4 * D) * 0.02), nn.Parameter(torch.randn(E, 4 * D, D) * 0.02)
    def forward(self, x):
        p = self.gate(x).softmax(-1); top, k = p.max(-1); one = F.one_hot(k, E).float(); place = (one.cumsum(0) * one).sum(-1).long() - 1; keep = (place < C).float(); dispatch = one[..., None] * F.one_hot(place.clamp(0, C - 1), C).float()[:, None] * keep[:, None, None]
        h = torch.einsum("nec,nd->ecd", dispatch, x); h = torch.bmm(F.gelu(torch.bmm(h, self.w1)), self.w2); return torch.einsum("nec,ecd->nd", dispatch * top[:, None, None], h)
class Layer(nn.Module):
    def __init__(self): super().__init__(); self.a = nn.MultiheadAttention(D, 8, batch_first=True); self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D); self.m = MoE()
    def forward(self, x): h = self.n1(x); x = x + self.a(h, h, h, need_weights=False)[0]; return x + self.m(self.n2(x).view(-1, D)).view_as(x)
net = nn.Sequential(nn.Embedding(16000, D), *[Layer() for _ in range(L)], nn.LayerNorm(D), nn.Linear(D, 16000)).cuda(); opt = torch.optim.AdamW(net.parameters(), 3e-4)
for i in range(40):
    x = torch.randint(0, 16000, (B, T)).cuda(); loss = F.cross_entropy(net(x).view(-1, 16000), x.view(-1)); opt.zero_grad(); loss.backward(); opt.step()
    if i % 10 == 0: print(i, loss.item())
