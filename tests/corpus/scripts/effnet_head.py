import torch, torch.nn as nn
from torchvision.models import efficientnet_b0
model = efficientnet_b0(weights=None)
for p in model.features.parameters(): p.requires_grad = False
model.classifier[1] = nn.Linear(1280, 37); model = model.to("cuda"); opt = torch.optim.Adam(model.classifier.parameters(), lr=1e-3)
for epoch in range(2):
    model.train(); total = hits = 0
    for i in range(30):
        x, y = torch.randn(64, 3, 224, 224).to("cuda"), torch.randint(0, 37, (64,)).to("cuda"); out = model(x); loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad(); loss.backward(); opt.step(); total += len(y); hits += (out.argmax(1) == y).sum().item()
    print(f"epoch {epoch}: {hits / total:.2%}")
