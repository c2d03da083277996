import math, random, time
import torch, torchvision
from torch import nn
from torch.cuda.amp import GradScaler, autocast
ACCUM, BS = 4, 32
torch.manual_seed(0); torch.backends.cudnn.benchmark = False
net = torchvision.models.efficientnet_v2_s(num_classes=100).to(memory_format=torch.channels_last).cuda()
decay = [p for n, p in net.named_parameters() if p.ndim > 1]; rest = [p for n, p in net.named_parameters() if p.ndim <= 1]
opt = torch.optim.SGD([{"params": decay, "weight_decay": 5e-5}, {"params": rest, "weight_decay": 0}], lr=0.2, momentum=0.9, nesterov=True)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.4, total_steps=1000); scaler = GradScaler(); crit = nn.CrossEntropyLoss(label_smoothing=0.1)
def batches(n):
    for _ in range(n):
        x = torch.randint(0, 256, (BS, 3, 224, 224), dtype=torch.uint8); y = torch.randint(0, 100, (BS,))
        yield x.cuda(non_blocking=True).float().div_(255).contiguous(memory_format=torch.channels_last), y.cuda(non_blocking=True)
tic = time.time(); running = 0.0
for it, (x, y) in enumerate(batches(ACCUM * 40)):
    lam = random.betavariate(0.2, 0.2); perm = torch.randperm(BS, device=x.device); x = lam * x + (1 - lam) * x[perm]
    with autocast():
        out = net(x); loss = (lam * crit(out, y) + (1 - lam) * crit(out, y[perm])) / ACCUM
    scaler.scale(loss).backward(); running += loss.detach()
    if (it + 1) % ACCUM == 0:
        scaler.unscale_(opt); torch.nn.utils.clip_grad_norm_(net.parameters(), 2.0); scaler.step(opt); scaler.update(); opt.zero_grad(set_to_none=True); sched.step()
        if math.isnan(float(running)): raise SystemExit("diverged")
        print(f"it {it:4d} loss {running:.3f} scale {scaler.get_scale():.0f} {BS * ACCUM / (time.time() - tic):.1f} img/s"); running = 0.0; tic = time.time()
