"""Draws random workloads to measure: `python -m lab.draw SEED COUNT > JOBS`, one job of `lab/measure.py` per line.

A seed draws from the whole zoo, so that nobody chooses the workloads by which the estimate is judged. With `--usual` it
draws common settings: batches that are powers of two, default image sizes, SGD for images, AdamW for text. Invariants:
every model comes once before any comes twice. No job equals one that was drawn or measured before. By the estimate
itself, each job takes a few seconds on an H200 and fits, so there are no jobs near the memory limit and no steps of
many seconds.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lab.jobs import workload_of
from lab.rows import as_job, read_lines, read_rows
from teraflock.base.errors import BadInput
from teraflock.catalog.cards import card
from teraflock.estimate.answer import answer
from teraflock.estimate.cards import MEASURED_ID
from teraflock.estimate.model import Question
from teraflock.workload.model import OPTIMIZERS, PRECISIONS
from teraflock.workload.zoo import ENTRIES, IMAGE_FIXED, ZooEntry

MEASURED = Path(__file__).parent / "measured"
TRUTH = Path(__file__).parents[2] / "shared/truth/h200.csv"
RESERVED_BYTES_MAX = 110 << 30
STEP_SECONDS_MAX = 0.25
"""Short enough that thirteen steps take less time than starting CUDA."""
TRIES_MAX = 200
SIDES = (128, 160, 192, 256, 288, 320, 384)
LENGTHS = (64, 96, 128, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048)
RANKS = (2, 4, 8, 16, 32, 64, 128)
LENGTHS_USUAL = (128, 256, 512, 1024, 2048)
PRECISIONS_USUAL = {"fp32": 8, "amp-bf16": 6, "bf16": 3, "amp-fp16": 1, "fp16": 1, "tf32": 1}
OPTIMIZERS_USUAL = {
    "image": {"sgd": 7, "adamw": 2, "adam": 1},
    "text": {"adamw": 8, "adam": 1, "sgd": 1},
    "generator": {"adam": 1},
}
"""Weights by how common each optimizer is."""

Draw = Callable[[random.Random, ZooEntry], dict[str, Any]]
DRAWN = sorted(set(ENTRIES) - {"unet-diffusion-sdxl"})
"""Without the model whose every step is longer than `STEP_SECONDS_MAX` or nearly so."""
CONVOLUTIONAL = [  # and with a builder in `lab/measure.py`
    name for name in DRAWN if ENTRIES[name].kind == "image" and not name.startswith(("vit_", "swin_", "yolo"))
]


def drawn(
    chance: random.Random, count: int, known: set[str], draw: Draw, models: Sequence[str] = DRAWN
) -> Iterator[dict[str, Any]]:
    names: list[str] = []
    while len(names) < count:
        names += chance.sample(models, len(models))
    for name in chance.sample(names[:count], count):
        for _ in range(TRIES_MAX):
            job = draw(chance, ENTRIES[name])
            if _key(job) not in known and _is_small(job):
                known.add(_key(job))
                yield job
                break


def anywhere(chance: random.Random, entry: ZooEntry) -> dict[str, Any]:
    text, train = entry.kind == "text", chance.random() < 0.8
    sizes = [each for each in LENGTHS if not entry.seq_max or each <= entry.seq_max]
    resized = entry.kind == "image" and entry.name not in IMAGE_FIXED and chance.random() < 0.35
    return {
        "kind": "row",
        "model": entry.name,
        "task": "train" if train else "infer",
        "batch": round(2 ** (chance.uniform(0, 6) if text else chance.uniform(2, 9))),
        "seq": chance.choice(sizes) if text else None,
        "precision": chance.choice(PRECISIONS),
        "optimizer": chance.choice(OPTIMIZERS) if train else "",
        "ckpt": int(text and train and chance.random() < 0.3),
        "lora": chance.choice(RANKS) if text and train and chance.random() < 0.3 else 0,
        "px": chance.choice(SIDES) if resized else None,
    }


def usual(chance: random.Random, entry: ZooEntry) -> dict[str, Any]:
    text, train = entry.kind == "text", chance.random() < 0.85
    sizes = [each for each in LENGTHS_USUAL if not entry.seq_max or each <= entry.seq_max]
    return {
        "kind": "row",
        "model": entry.name,
        "task": "train" if train else "infer",
        "batch": 1 << (chance.randint(0, 6) if text else chance.randint(3, 9)),
        "seq": chance.choice(sizes) if text else None,
        "precision": _weighed(chance, PRECISIONS_USUAL),
        "optimizer": _weighed(chance, OPTIMIZERS_USUAL[entry.kind]) if train else "",
        "ckpt": int(text and train and chance.random() < 0.2),
        "lora": chance.choice((8, 16)) if text and train and chance.random() < 0.2 else 0,
        "px": None,
    }


def plain(chance: random.Random, entry: ZooEntry) -> dict[str, Any]:
    """An image model whose convolutions run without TF32, as on GPUs without it."""
    train = chance.random() < 0.7
    resized = entry.name not in IMAGE_FIXED and chance.random() < 0.25
    return {
        "kind": "row",
        "model": entry.name,
        "task": "train" if train else "infer",
        "batch": round(2 ** chance.uniform(2, 6)),
        "seq": None,
        "precision": "fp32",
        "optimizer": "sgd" if train else "",
        "ckpt": 0,
        "lora": 0,
        "px": chance.choice(SIDES) if resized else None,
        "plain": 1,
    }


def _weighed(chance: random.Random, weights: dict[str, int]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]


def _is_small(job: dict[str, Any]) -> bool:
    try:
        found = answer(workload_of(job), Question(cards=[card(MEASURED_ID)]))
    except BadInput:
        return False
    seconds = found.gpus[0].step_seconds
    assert seconds is not None
    return seconds.p50 <= STEP_SECONDS_MAX and found.memory.reserved_peak_bytes <= RESERVED_BYTES_MAX


def _key(job: dict[str, Any]) -> str:
    names = ("model", "task", "batch", "seq", "precision", "optimizer", "ckpt", "lora", "px", "plain")
    return json.dumps([job.get(each) or None for each in names])


def known_keys() -> set[str]:
    keys = set()
    for path in MEASURED.glob("*.jobs"):
        keys |= {_key(json.loads(line)) for line in path.read_text().splitlines()}
    for path in MEASURED.glob("*.jsonl.gz"):
        keys |= {_key(row["job"]) for row in read_lines(path) if row.get("job", {}).get("kind") == "row"}
    for path in (*MEASURED.glob("*.csv"), *([TRUTH] if TRUTH.is_file() else [])):
        keys |= {_key(as_job(row)) for row in read_rows(path) if "task" in row}
    return keys


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--usual", action="store_true", help="draw common settings")
    parser.add_argument(
        "--plain", action="store_true", help="draw image models whose convolutions run without TF32"
    )
    parser.add_argument("--record", action="store_true", help="record every operation, to fit on")
    options = parser.parse_args()
    draw = plain if options.plain else usual if options.usual else anywhere
    models = CONVOLUTIONAL if options.plain else DRAWN
    for job in drawn(random.Random(options.seed), options.count, known_keys(), draw, models):
        print(json.dumps({**job, "record": int(options.record)}, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
