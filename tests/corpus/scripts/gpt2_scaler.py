import argparse, math, time
import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--micro", type=int, default=8)
parser.add_argument("--accumulate", type=int, default=8)
parser.add_argument("--length", type=int, default=512)
parser.add_argument("--steps", type=int, default=40)
args = parser.parse_args()

model = GPT2LMHeadModel(GPT2Config(n_embd=1024, n_layer=24, n_head=16)).cuda()
model.config.use_cache = False
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f}M parameters")
opt = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
scaler = torch.cuda.amp.GradScaler()
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-4, total_steps=args.steps + 1)

for step in range(args.steps):
    start, total = time.time(), 0.0
    for micro in range(args.accumulate):
        ids = torch.randint(0, 50257, (args.micro, args.length)).cuda()
        with torch.cuda.amp.autocast(dtype=torch.float16):
            loss = model(ids, labels=ids).loss / args.accumulate
        scaler.scale(loss).backward()
        total += loss.item()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
    sched.step()
    tokens = args.micro * args.accumulate * args.length / (time.time() - start)
    print(f"step {step} loss {total:.3f} ppl {math.exp(min(total, 20)):.1f} {tokens:.0f} tok/s")
