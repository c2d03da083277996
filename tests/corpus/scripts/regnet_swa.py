# RegNetY, channels last, bf16 autocast, averaged weights, random erasing on the GPU
import torch, torchvision
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
torch.backends.cudnn.benchmark = True
model = torchvision.models.regnet_y_8gf(weights=None, num_classes=1000).to("cuda", memory_format=torch.channels_last)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9999))
norm = [p for n, p in model.named_parameters() if p.ndim == 1]
rest = [p for n, p in model.named_parameters() if p.ndim != 1]
opt = torch.optim.SGD([{"params": rest, "weight_decay": 5e-5}, {"params": norm, "weight_decay": 0.0}], lr=0.8, momentum=0.9)
sched = torch.optim.lr_scheduler.SequentialLR(opt, [torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=5), torch.optim.lr_scheduler.CosineAnnealingLR(opt, 95)], milestones=[5])
crit = nn.CrossEntropyLoss(label_smoothing=0.1)
def erase(x, size=64):
    i, j = torch.randint(0, x.shape[2] - size, (2,)).tolist(); x[:, :, i:i + size, j:j + size] = torch.randn_like(x[:, :, i:i + size, j:j + size]); return x
for it in range(60):
    x = torch.randn(128, 3, 224, 224).to("cuda", memory_format=torch.channels_last, non_blocking=True); y = torch.randint(0, 1000, (128,)).to("cuda", non_blocking=True)
    x = erase(x)
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
        out = model(x); loss = crit(out, y)
    opt.zero_grad(set_to_none=True); loss.backward(); opt.step(); ema.update_parameters(model); sched.step()
    if it % 20 == 0: print(it, loss.item(), (out.topk(5).indices == y[:, None]).any(1).float().mean().item())
