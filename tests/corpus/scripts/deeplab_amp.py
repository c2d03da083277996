import torch, torchvision
from torch.amp import GradScaler, autocast
model = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21, aux_loss=True).cuda(); params = [{"params": model.backbone.parameters()}, {"params": model.classifier.parameters()}, {"params": model.aux_classifier.parameters(), "lr": 0.1}]
opt = torch.optim.SGD(params, lr=0.01, momentum=0.9, weight_decay=1e-4); scaler = GradScaler("cuda"); sched = torch.optim.lr_scheduler.PolynomialLR(opt, 1000, 0.9)
def criterion(out, y): losses = {k: torch.nn.functional.cross_entropy(v, y, ignore_index=255) for k, v in out.items()}; return losses["out"] + 0.5 * losses["aux"]
for i in range(40):
    x, y = torch.randn(8, 3, 384, 384).cuda(), torch.randint(0, 21, (8, 384, 384)).cuda()
    with autocast("cuda"): loss = criterion(model(x), y)
    opt.zero_grad(); scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); sched.step()
    if i % 10 == 0: print(i, loss.item())
