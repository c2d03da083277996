"""How much of their peaks older cards reach, from public single-operator latencies: prints what cards.py holds.

`python -m recording.reach FOLDER` reads the latencies (fp32, forward; one .csv.gz per operator) and says by what factor
the scaled H200 curve must be divided on each card. The files themselves are not part of the project.
"""

import csv
import gzip
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from teraflock.catalog.cards import all_cards
from teraflock.estimate.cards import peaks
from teraflock.estimate.operation import Work, work
from teraflock.estimate.speed import measured, seconds_h200, seconds_on

LATENCY_MIN = 0.3e-3
EVERY = 7


def view(name: str, row: dict[str, str]) -> Work:
    def n(key: str) -> int:
        return int(float(row[key]))

    if name == "conv":
        batch, cin, cout, size = n("batch"), n("in_channels"), n("out_channels"), n("input_size")
        kernel, stride, pad = n("kernel_size"), n("stride"), n("padding")
        out = (size + 2 * pad - kernel) // stride + 1
        return work(
            "convolution",
            [("f", [batch, cin, size, size], True), ("f", [cout, cin, kernel, kernel], True)],
            [("f", [batch, cout, out, out], True)],
            [stride, pad, 1, 0, 1],
        )
    if name == "linear":
        rows, i, o = n("rows"), n("in_features"), n("out_features")
        return work(
            "addmm",
            [("f", [o], True), ("f", [rows, i], True), ("f", [i, o], True)],
            [("f", [rows, o], True)],
            [],
        )
    if name == "bmm":
        b, m, k, o = n("batch"), n("m"), n("k"), n("n")
        return work("bmm", [("f", [b, m, k], True), ("f", [b, k, o], True)], [("f", [b, m, o], True)], [])
    shape = ("f", [n("rows"), n("cols")], True)
    label = {"add": "add", "softmax": "_softmax", "ln": "native_layer_norm", "gelu": "gelu", "relu": "relu"}[
        name
    ]
    return work(label, [shape, shape] if name == "add" else [shape], [shape], [])


def main() -> None:
    folder = Path(sys.argv[1])
    known = measured()
    cards = {card.id: peaks(card) for card in all_cards()}
    for name in ("linear", "bmm", "conv", "add", "relu", "gelu", "softmax", "ln"):
        found: dict[str, list[float]] = defaultdict(list)
        with gzip.open(folder / f"{name}.csv.gz", "rt") as lines:
            for index, row in enumerate(csv.DictReader(lines)):
                seconds = float(row["latency_ms"]) * 1e-3
                there = cards.get(row["gpu"])
                if index % EVERY or seconds < LATENCY_MIN or there is None:
                    continue
                one = view(name, row)
                found[row["gpu"]].append(
                    seconds_on(one, seconds_h200(one, known, tf32=False), there, tf32=False) / seconds
                )
        print(name, {gpu: f"{median(v):.2f} of {len(v)}" for gpu, v in found.items()})


if __name__ == "__main__":
    main()
