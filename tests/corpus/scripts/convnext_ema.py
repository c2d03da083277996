import copy, torch, torch.nn as nn, torchvision
model = torchvision.models.convnext_tiny(weights=None, num_classes=100).cuda(); ema = copy.deepcopy(model).eval()
for p in ema.parameters(): p.requires_grad_(False)
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.05); sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 50); crit = nn.CrossEntropyLoss(label_smoothing=0.1)
def mixup(x, y, a=0.8): lam = torch.distributions.Beta(a, a).sample().item(); return lam * x + (1 - lam) * x.flip(0), lam
@torch.no_grad()
def update(decay=0.999):
    for e, p in zip(ema.parameters(), model.parameters()): e.mul_(decay).add_(p, alpha=1 - decay)
for it in range(50):
    x, y = torch.randn(64, 3, 224, 224).cuda(non_blocking=True), torch.randint(0, 100, (64,)).cuda(non_blocking=True); x, lam = mixup(x, y)
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16): out = model(x); loss = lam * crit(out, y) + (1 - lam) * crit(out, y.flip(0))
    opt.zero_grad(); loss.backward(); opt.step(); sched.step(); update()
    if it % 25 == 0: print(f"{it}: {loss.item():.3f}")
