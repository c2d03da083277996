"""A training run for `lab/card_run.py`: a small transformer in bf16, the same result however often it is interrupted.

    python card_train.py [STEPS]

Needs only PyTorch. Random numbers depend on the step alone, so a checkpoint has weights, optimizer and step.
"""

import json
import os
import sys
from pathlib import Path

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
SAVE_EVERY = 300
WIDTH, LAYERS, HEADS, WORDS = 512, 6, 8, 8192
LENGTH, BATCH = 512, 32
SEED = 7
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CHECKPOINTS = Path(os.environ.get("TERA_CHECKPOINTS", "checkpoints"))
OUTPUTS = Path(os.environ.get("TERA_OUTPUTS", "outputs"))

if DEVICE == "cpu":  # to try the script without a card
    WIDTH, LAYERS, WORDS, LENGTH, BATCH, SAVE_EVERY = 64, 2, 256, 32, 8, 50


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        there = torch.arange(LENGTH, device=tokens.device)
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, device=tokens.device)
        seen = self.layers(self.words(tokens) + self.places(there), mask=mask, is_causal=True)
        return self.out(seen)  # type: ignore[no-any-return]


def batch(step: int) -> torch.Tensor:
    """Sequences that count up from a random number, so that there is something to learn."""
    draw = torch.Generator().manual_seed(SEED + step)
    start = torch.randint(WORDS, (BATCH, 1), generator=draw)
    stride = torch.randint(1, 8, (BATCH, 1), generator=draw)
    return ((start + stride * torch.arange(LENGTH + 1)) % WORDS).to(DEVICE)


def save(path: Path, state: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(state, path.with_suffix(".tmp"))
    path.with_suffix(".tmp").rename(path)


def main() -> None:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(mode=True)
    model = Language().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step, path = 0, CHECKPOINTS / "state.pt"
    if path.exists():
        saved = torch.load(path, map_location=DEVICE, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
        print(f"continues after step {step}", flush=True)
    loss = torch.zeros(())
    while step < STEPS:
        tokens = batch(step)
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16):
            guessed = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(guessed.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        step += 1
        if step % SAVE_EVERY == 0:
            save(path, {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()})
        if step % 50 == 0:
            report(step, loss.item())
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    (OUTPUTS / "result.txt").write_text(f"{loss.item().hex()}\n")


def report(step: int, loss: float) -> None:
    try:
        import teraflock  # in a run; elsewhere the script needs only PyTorch

        teraflock.progress(step, STEPS, loss)
    except ImportError:
        print(json.dumps({"step": step, "of": STEPS, "loss": loss}), flush=True)


main()
