# DeepFM click-through rate: 26 categorical fields, embeddings on the GPU
import torch, torch.nn as nn
FIELDS, VOCAB, DIM, BATCH = 26, 50_000, 16, 8192
class DeepFM(nn.Module):
    def __init__(self):
        super().__init__(); self.linear = nn.Embedding(FIELDS * VOCAB, 1); self.fm = nn.Embedding(FIELDS * VOCAB, DIM); self.register_buffer("offsets", torch.arange(FIELDS) * VOCAB)
        layers, i = [], FIELDS * DIM
        for o in (400, 400, 400): layers += [nn.Linear(i, o), nn.BatchNorm1d(o), nn.ReLU(), nn.Dropout(0.2)]; i = o
        self.mlp = nn.Sequential(*layers, nn.Linear(i, 1))
    def forward(self, x):
        x = x + self.offsets; e = self.fm(x); square = e.sum(1) ** 2 - (e ** 2).sum(1)
        return (self.linear(x).sum(1) + 0.5 * square.sum(1, keepdim=True) + self.mlp(e.flatten(1))).squeeze(1)
model = DeepFM().to("cuda"); optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6); criterion = nn.BCEWithLogitsLoss()
data = torch.randint(0, VOCAB, (BATCH * 8, FIELDS)); labels = (torch.rand(BATCH * 8) > 0.7).float()
for epoch in range(6):
    for i in range(0, len(data), BATCH):
        x, y = data[i:i + BATCH].to("cuda"), labels[i:i + BATCH].to("cuda"); loss = criterion(model(x), y); model.zero_grad(); loss.backward(); optimizer.step()
    print("epoch", epoch, "loss", loss.item())
