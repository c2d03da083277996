import torch, torch.nn.functional as F
from torchvision.models.segmentation import fcn_resnet50
torch.backends.cudnn.benchmark = True
model = fcn_resnet50(weights=None, weights_backbone=None, num_classes=19, aux_loss=True).cuda().to(memory_format=torch.channels_last)
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4); sched = torch.optim.lr_scheduler.PolynomialLR(opt, 100, 0.9)
for i in range(50):
    x = torch.randn(8, 3, 384, 384).cuda().to(memory_format=torch.channels_last); y = torch.randint(0, 19, (8, 384, 384)).cuda()
    with torch.autocast("cuda", torch.bfloat16): out = model(x); loss = F.cross_entropy(out["out"], y, ignore_index=255) + 0.4 * F.cross_entropy(out["aux"], y, ignore_index=255)
    opt.zero_grad(set_to_none=True); loss.backward(); opt.step(); sched.step()
print(loss.item())
