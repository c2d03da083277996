import torch, torchvision
from torch.amp import GradScaler, autocast
model = torchvision.models.swin_t(weights=None, num_classes=200).to("cuda"); opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05); scaler = GradScaler(); crit = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
for i in range(45):
    x, y = torch.randn(48, 3, 224, 224).to("cuda"), torch.randint(0, 200, (48,)).to("cuda"); opt.zero_grad(set_to_none=True)
    with autocast("cuda", dtype=torch.float16): loss = crit(model(x), y)
    scaler.scale(loss).backward(); scaler.unscale_(opt); torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0); scaler.step(opt); scaler.update()
print(loss.item(), scaler.get_scale())
