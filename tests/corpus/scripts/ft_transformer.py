"""FT-Transformer on tabular data: a token for every numeric and categorical feature."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

CARDS = [12, 7, 30, 1000, 55, 4, 2, 410]


class Tokens(nn.Module):
    def __init__(self, numeric, cards, d):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(numeric, d) * 0.02), nn.Parameter(torch.zeros(numeric, d))
        self.embeds = nn.ModuleList(nn.Embedding(c, d) for c in cards)
        self.cls = nn.Parameter(torch.zeros(1, 1, d))

    def forward(self, x, c):
        num = x.unsqueeze(-1) * self.weight + self.bias
        cat = torch.stack([e(c[:, i]) for i, e in enumerate(self.embeds)], 1)
        return torch.cat([self.cls.expand(len(x), -1, -1), num, cat], 1)


class ReGLU(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, -1)
        return a * torch.relu(b)


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.n1, self.att = nn.LayerNorm(d), nn.MultiheadAttention(d, h, dropout=0.2, batch_first=True)
        self.n2, self.ff = nn.LayerNorm(d), nn.Sequential(nn.Linear(d, 2 * int(d * 4 / 3)), ReGLU(), nn.Dropout(0.1), nn.Linear(int(d * 4 / 3), d))

    def forward(self, x):
        y = self.n1(x)
        x = x + self.att(y, y, y, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class FTTransformer(nn.Module):
    def __init__(self, numeric=32, d=192, h=8, layers=3):
        super().__init__()
        self.tokens, self.blocks = Tokens(numeric, CARDS, d), nn.ModuleList(Block(d, h) for _ in range(layers))
        self.head = nn.Sequential(nn.LayerNorm(d), nn.ReLU(), nn.Linear(d, 1))

    def forward(self, x, c):
        x = self.tokens(x, c)
        for b in self.blocks:
            x = b(x)
        return self.head(x[:, 0]).squeeze(-1)


rows = 40960
x = torch.from_numpy(np.random.randn(rows, 32).astype(np.float32))
c = torch.stack([torch.randint(0, n, (rows,)) for n in CARDS], 1)
y = (torch.rand(rows) < 0.3).float()
loader = DataLoader(TensorDataset(x, c, y), batch_size=1024, shuffle=True)
model = FTTransformer().to("cuda")
decay = [p for n, p in model.named_parameters() if "bias" not in n and "tokens" not in n]
plain = [p for n, p in model.named_parameters() if "bias" in n or "tokens" in n]
opt = torch.optim.AdamW([{"params": decay}, {"params": plain, "weight_decay": 0}], lr=1e-4, weight_decay=1e-5)
for epoch in range(3):
    model.train()
    for i, (bx, bc, by) in enumerate(loader):
        bx, bc, by = bx.to("cuda"), bc.to("cuda"), by.to("cuda")
        loss = nn.functional.binary_cross_entropy_with_logits(model(bx, bc), by)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
