# As torchrun starts it: DDP, mixed precision with a scaler, an averaged copy, events, checks on the loss, numpy.
import copy
import math
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
layer = nn.TransformerEncoderLayer(64, 4, batch_first=True)
net = nn.Sequential(nn.Embedding(1000, 64), nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(64 * 16, 10)).to(rank)
ema = copy.deepcopy(net).eval()
net = DDP(net, device_ids=[rank])
opt = torch.optim.AdamW(net.parameters(), 1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 100)
scaler = torch.amp.GradScaler("cuda")
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
large = torch.randn(50000, 3, 64, 64)  # 2.3 GiB of host memory that is never touched
for step in range(100):
    ids, y = torch.randint(0, 1000, (8, 16)), torch.randint(0, 10, (8,))
    start.record()
    with torch.autocast("cuda", dtype=torch.float16):
        out = net(ids.cuda(non_blocking=True))
        loss = nn.functional.cross_entropy(out, y.to(rank))
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    sched.step()
    with torch.no_grad():
        for a, b in zip(ema.parameters(), net.module.parameters()):
            a.mul_(0.99).add_(b.detach(), alpha=0.01)
    end.record()
    torch.cuda.synchronize()
    if torch.isnan(loss) or not torch.isfinite(loss) or not math.isfinite(loss.item()):
        raise SystemExit(1)
    accuracy = (out.argmax(1).cpu().numpy() == y.numpy()).mean()
    print(step, f"{norm:.2f} {accuracy:.2f} {start.elapsed_time(end):.1f} ms", torch.cuda.memory_summary()[:5])
    if loss.item() < 0.1:
        break
