"""One model on several machines with PyTorch: node 0 saves and loads, and tells the others where to continue.

tera run examples/train_nodes.py --nodes 2 --gpu V100 --setup "pip install torch numpy" -- 2000
"""

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import teraflock

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
SAVE_EVERY = 50
WAIT = timedelta(minutes=10)  # for a node that starts late or is slow
CHECKPOINTS = Path(os.environ.get("TERA_CHECKPOINTS", "checkpoints"))
OUTPUTS = Path(os.environ.get("TERA_OUTPUTS", "outputs"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    dist.init_process_group(
        "nccl" if DEVICE == "cuda" else "gloo", timeout=WAIT
    )  # the environment has the rest
    try:
        train(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()  # also after an error: threads that are left at the exit may abort the process


def train(rank: int, world: int) -> None:
    torch.manual_seed(7)
    plain = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).to(DEVICE)
    path = CHECKPOINTS / "state.pt"
    saved = continued(path, rank)
    if saved is not None:
        plain.load_state_dict(saved["model"])
    model = DistributedDataParallel(plain)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    if saved is not None:
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
        print(f"node {rank} continues after step {step}", flush=True)
    loss = torch.zeros((), device=DEVICE)
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
    dist.reduce(loss, dst=0)  # node 0 leaves last: it has the store through which the nodes found each other


def continued(path: Path, rank: int) -> dict[str, Any] | None:
    """The checkpoint of node 0 on every node. Nodes that start at different steps would wait for each other in
    different places, and gloo aborts a process that receives what it did not ask for."""
    found = [torch.load(path, map_location="cpu", weights_only=True) if rank == 0 and path.exists() else None]
    dist.broadcast_object_list(found, src=0)
    return found[0]


def save(path: Path, state: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".tmp")
    torch.save(state, new)
    new.rename(path)


main()
