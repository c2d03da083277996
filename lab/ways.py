"""What to measure of the host: `python -m lab.ways > JOBS`, for `lab/measure_host.py`.

Every model of the zoo in each way that changes what the host does, at a batch so small that the GPU waits for it.
"""

import json
from typing import Final

from teraflock.workload.zoo import ENTRIES

Way = tuple[str, str, str, int, int]
"""Task, precision, optimizer, checkpointing, LoRA rank."""
WAYS: Final[tuple[Way, ...]] = (
    ("infer", "fp32", "", 0, 0),
    ("infer", "amp-bf16", "", 0, 0),
    ("train", "fp32", "sgd", 0, 0),
    ("train", "fp32", "adamw", 0, 0),
    ("train", "fp32", "adafactor", 0, 0),
    ("train", "amp-bf16", "sgd", 0, 0),
)
TEXT: Final[tuple[Way, ...]] = (
    ("train", "fp32", "sgd", 1, 0),
    ("train", "fp32", "adamw", 0, 16),
    ("train", "fp32", "sgd", 1, 16),
)
LARGE: Final[tuple[Way, ...]] = (
    ("infer", "bf16", "", 0, 0),
    ("train", "bf16", "sgd", 0, 16),
    ("train", "bf16", "sgd", 1, 16),
)
"""Of models whose weights take the GPU longer than the host takes to issue a step."""
LARGE_MODELS: Final = ("llama-3b", "llama-8b")


def main() -> None:
    for name, entry in ENTRIES.items():
        text = entry.kind == "text"
        for task, precision, optimizer, ckpt, lora in (
            LARGE if name in LARGE_MODELS else (*WAYS, *TEXT) if text else WAYS
        ):
            job = {
                "kind": "host", "model": name, "task": task, "batch": 1 if text else 2, "seq": 32 if text else None,
                "precision": precision, "optimizer": optimizer, "ckpt": ckpt, "lora": lora, "px": None, "record": 0,
            }  # fmt: skip
            print(json.dumps(job, separators=(",", ":")))


if __name__ == "__main__":
    main()
