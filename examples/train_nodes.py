"""One model on several machines with PyTorch: node 0 saves, and all nodes load.

tera run examples/train_nodes.py --nodes 2 --gpu V100 --setup "pip install torch numpy" -- 2000
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import teraflock

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
SAVE_EVERY = 50
CHECKPOINTS = Path(os.environ.get("TERA_CHECKPOINTS", "checkpoints"))
OUTPUTS = Path(os.environ.get("TERA_OUTPUTS", "outputs"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    dist.init_process_group("nccl" if DEVICE == "cuda" else "gloo")  # address and rank are in the environment
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    plain = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).to(DEVICE)
    model = DistributedDataParallel(plain)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, path = 0, CHECKPOINTS / "state.pt"
    if path.exists():
        saved = torch.load(path, weights_only=True)
        plain.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
        print(f"node {rank} continues after step {step}", flush=True)
    loss = torch.zeros(())
    while step < STEPS:
        data = torch.Generator().manual_seed(step * world + rank)  # every node has its own part of the batch
        x = torch.randn(64, 8, generator=data)
        y = x.sum(1, keepdim=True).sin()
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x.to(DEVICE)), y.to(DEVICE))
        loss.backward()
        optimizer.step()
        step += 1
        if step % SAVE_EVERY == 0 and rank == 0:
            save(path, {"step": step, "model": plain.state_dict(), "optimizer": optimizer.state_dict()})
            teraflock.progress(step, STEPS, loss.item())
    dist.all_reduce(loss := loss.detach())
    if rank == 0:
        OUTPUTS.mkdir(parents=True, exist_ok=True)
        (OUTPUTS / "result.txt").write_text(f"{(loss / world).item().hex()}\n")
        print(f"done: loss {(loss / world).item():.6f}")
    dist.barrier()  # a node that leaves early takes its connections with it
    dist.destroy_process_group()


def save(path: Path, state: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".tmp")
    torch.save(state, new)
    new.rename(path)


main()
