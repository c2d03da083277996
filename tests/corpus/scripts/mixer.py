import torch, torch.nn as nn
class Mix(nn.Module):
    def __init__(self, d, n, td, cd): super().__init__(); self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d); self.tok = nn.Sequential(nn.Linear(n, td), nn.GELU(), nn.Linear(td, n)); self.chan = nn.Sequential(nn.Linear(d, cd), nn.GELU(), nn.Linear(cd, d))
    def forward(self, x): x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2); return x + self.chan(self.n2(x))
model = nn.Sequential(nn.Conv2d(3, 512, 16, 16), nn.Flatten(2)); body = nn.Sequential(*[Mix(512, 196, 256, 2048) for _ in range(8)], nn.LayerNorm(512)); head = nn.Linear(512, 1000); model, body, head = model.cuda(), body.cuda(), head.cuda(); params = [*model.parameters(), *body.parameters(), *head.parameters()]; opt = torch.optim.SGD(params, lr=0.1, momentum=0.9)
for i in range(45):
    x, y = torch.randn(64, 3, 224, 224).cuda(), torch.randint(0, 1000, (64,)).cuda(); loss = nn.functional.cross_entropy(head(body(model(x).transpose(1, 2)).mean(1)), y); opt.zero_grad(); loss.backward(); opt.step()
    if i % 20 == 0: print(i, loss.item())
