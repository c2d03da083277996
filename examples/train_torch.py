"""The same as train_plain.py with PyTorch: weights, optimizer, step and random state are saved together.

tera run examples/train_torch.py --gpu V100 --setup "pip install torch" -- 2000
"""

import os
import sys
from pathlib import Path

import torch

import teraflock

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
SAVE_EVERY = 50
CHECKPOINTS = Path(os.environ.get("TERA_CHECKPOINTS", "checkpoints"))
OUTPUTS = Path(os.environ.get("TERA_OUTPUTS", "outputs"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, path = 0, CHECKPOINTS / "state.pt"
    if path.exists():
        saved = torch.load(path, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"].cpu())
        step = saved["step"]
        print(f"continues after step {step}")
    loss = torch.zeros(())
    while step < STEPS:
        x = torch.randn(64, 8)  # drawn on the CPU: the same on every device
        y = x.sum(1, keepdim=True).sin()
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x.to(DEVICE)), y.to(DEVICE))
        loss.backward()
        optimizer.step()
        step += 1
        if step % SAVE_EVERY == 0:
            save(path, step, model, optimizer)
            teraflock.progress(step, STEPS, loss.item())
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    (OUTPUTS / "result.txt").write_text(f"{loss.item().hex()}\n")
    print(f"done: loss {loss.item():.6f}")


def save(path: Path, step: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".tmp")
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**state, "random": torch.get_rng_state()}, new)
    new.rename(path)


main()
