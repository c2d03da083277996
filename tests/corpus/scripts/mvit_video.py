import torch, torchvision
from torch import nn
model = torchvision.models.video.mvit_v2_s(weights=None, num_classes=174).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05)
scaler = torch.amp.GradScaler("cuda"); loss_fn = nn.CrossEntropyLoss()
ACC = 2
for i in range(100):
    clip = torch.randn(8, 3, 16, 224, 224, device="cuda"); label = torch.randint(174, (8,), device="cuda")
    with torch.autocast("cuda", torch.float16): loss = loss_fn(model(clip), label) / ACC
    scaler.scale(loss).backward()
    if (i + 1) % ACC == 0:
        scaler.step(opt); scaler.update(); opt.zero_grad()
        if i % 10 == 9: print(i, loss.item() * ACC)
