"""Neural matrix factorisation of clicks: four large tables, an MLP and a product, dense Adam."""
import torch
import torch.nn as nn


class NeuMF(nn.Module):
    def __init__(self, users=138_493, items=26_744, factors=64, layers=(256, 256, 128, 64)):
        super().__init__()
        self.ug, self.ig = nn.Embedding(users, factors), nn.Embedding(items, factors)
        self.um, self.im = nn.Embedding(users, layers[0] // 2), nn.Embedding(items, layers[0] // 2)
        mlp = []
        for a, b in zip(layers, layers[1:]):
            mlp += [nn.Linear(a, b), nn.ReLU(), nn.Dropout(0.1)]
        self.mlp, self.out = nn.Sequential(*mlp), nn.Linear(factors + layers[-1], 1)
        for e in (self.ug, self.ig, self.um, self.im):
            nn.init.normal_(e.weight, std=0.01)

    def forward(self, u, i):
        gmf = self.ug(u) * self.ig(i)
        mlp = self.mlp(torch.cat([self.um(u), self.im(i)], dim=1))
        return self.out(torch.cat([gmf, mlp], dim=1)).view(-1)


BATCH, NEGATIVES = 65536, 4
dev = torch.device("cuda:0")
model = NeuMF().to(dev)
optimizer = torch.optim.Adam(model.parameters(), lr=0.0045, betas=(0.25, 0.5))
criterion = nn.BCEWithLogitsLoss(reduction="mean").to(dev)
users, items = torch.randint(0, 138_493, (1_000_000,)).to(dev), torch.randint(0, 26_744, (1_000_000,)).to(dev)
for epoch in range(4):
    order = torch.randperm(1_000_000, device=dev)
    for start in range(0, 1_000_000 - BATCH, BATCH):
        pick = order[start : start + BATCH // (1 + NEGATIVES)]
        u = users[pick].repeat_interleave(1 + NEGATIVES)
        i = torch.cat([items[pick, None], torch.randint(0, 26_744, (len(pick), NEGATIVES), device=dev)], 1).view(-1)
        y = torch.zeros(len(pick), 1 + NEGATIVES, device=dev)
        y[:, 0] = 1
        loss = criterion(model(u, i), y.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
