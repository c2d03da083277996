"""A network of plain tensors: no module and no optimizer object, and gradients that are asked for."""
import torch, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
W = [(torch.randn(a, b) / a ** .5).cuda().requires_grad_() for a, b in ((64, 128), (128, 128), (128, 10))]; b = [torch.zeros(n, requires_grad=True, device="cuda") for n in (128, 128, 10)]
mom = [torch.zeros_like(p) for p in W + b]
dl = DataLoader(TensorDataset(torch.randn(640, 64), torch.randint(0, 10, (640,))), 32, shuffle=True)
for ep in range(2):
    for x, y in dl:
        h = x.cuda()
        for w, c in zip(W, b): h = torch.tanh(h @ w + c)
        l = F.cross_entropy(h, y.cuda())
        g = torch.autograd.grad(l, W + b)
        with torch.no_grad():
            for p, q, m in zip(W + b, g, mom): m.mul_(0.9).add_(q); p.sub_(0.1 * m)
    print(f"{ep} {l:.3f}")
