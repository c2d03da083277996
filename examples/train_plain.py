"""A small training that can be interrupted at any moment and ends with exactly the same result.

It needs only Python. It fits a line to noisy points with stochastic gradient descent, and saves its weights, its step
and the state of its random numbers. A checkpoint is written under another name and then renamed: whoever copies the
folder sees a complete file or none.

    tera run examples/train_plain.py --cpu-only -- 2000
"""

import os
import pickle
import random
import sys
import time
from pathlib import Path

import teraflock

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
PAUSE = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
SAVE_EVERY = 50
CHECKPOINTS = Path(os.environ.get("TERA_CHECKPOINTS", "checkpoints"))
OUTPUTS = Path(os.environ.get("TERA_OUTPUTS", "outputs"))


def save(step: int, weights: tuple[float, float], numbers: random.Random) -> None:
    CHECKPOINTS.mkdir(parents=True, exist_ok=True)
    new = CHECKPOINTS / "state.pkl.tmp"
    with new.open("wb") as file:
        pickle.dump((step, weights, numbers.getstate()), file)
        file.flush()
        os.fsync(file.fileno())
    new.rename(CHECKPOINTS / "state.pkl")


def load() -> tuple[int, tuple[float, float], random.Random]:
    numbers = random.Random(7)
    path = CHECKPOINTS / "state.pkl"
    if not path.exists():
        return 0, (0.0, 0.0), numbers
    step, weights, state = pickle.loads(path.read_bytes())
    numbers.setstate(state)
    print(f"continues after step {step}")
    return step, weights, numbers


def main() -> None:
    step, (slope, offset), numbers = load()
    loss = 0.0
    while step < STEPS:
        x = numbers.uniform(-1, 1)
        error = slope * x + offset - (3 * x + 1 + numbers.gauss(0, 0.1))
        slope, offset = slope - 0.05 * error * x, offset - 0.05 * error
        loss = 0.99 * loss + 0.01 * error * error
        step += 1
        if step % SAVE_EVERY == 0:
            save(step, (slope, offset), numbers)
            teraflock.progress(step, STEPS)
            print(f"step {step}", flush=True)
        time.sleep(PAUSE)
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    (OUTPUTS / "result.txt").write_text(f"{slope.hex()} {offset.hex()}\n")
    print(f"done: y = {slope:.6f} x + {offset:.6f}")


main()
