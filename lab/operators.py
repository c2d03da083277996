"""Public latencies of single operators (fp32, forward; one .csv.gz per operator), seen as the estimate sees work.

The files are not part of the project: the folder is given. Some of their shapes were measured on an H200 too
(`measured/operators.jsonl.gz`). A latency includes a launch, which is taken off: the shortest latency of an operator
on a card is nearly all launch. Only latencies well above it are kept.
"""

import csv
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from teraflock.estimate.operation import Shaped, Work, work

Shape = tuple[tuple[str, int], ...]
OPERATORS = ("linear", "bmm", "conv", "add", "relu", "gelu", "softmax", "ln")
LABELS = {"add": "add", "softmax": "_softmax", "ln": "native_layer_norm", "gelu": "gelu", "relu": "relu"}
CARDS = ("P4", "P100-PCIe", "V100-PCIe", "T4", "A100-PCIe-40")
SAME_CHIP = {"A100-PCIe-80": "A100-PCIe-40"}
"""Convolutions were measured on the form with more memory; these are bound by arithmetic, which is the same."""
LAUNCH_SHARE = 0.9
LAUNCHES_MIN = 3.0
LAUNCHES_H200_MIN = 2.0
H200 = Path(__file__).parent / "measured/operators.jsonl.gz"


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """One shape of an operator with its seconds on every card, launches taken off."""

    operator: str
    work: Work
    seconds: dict[str, float]
    h200: float | None
    """None where it was not measured there, or is too short there to tell from its launch."""


def latencies(folder: Path, operator: str) -> list[Latency]:
    """Only shapes that are well above their launch on all cards."""
    found: dict[Shape, dict[str, float]] = {}
    with gzip.open(folder / f"{operator}.csv.gz", "rt") as lines:
        for row in csv.DictReader(lines):
            gpu = SAME_CHIP.get(row["gpu"], row["gpu"])
            found.setdefault(_shape(row), {})[gpu] = float(row["latency_ms"]) * 1e-3
    launch = {gpu: min(each[gpu] for each in found.values() if gpu in each) for gpu in CARDS}
    h200 = _on_h200(operator)
    return [
        Latency(
            operator=operator,
            work=view(operator, dict(shape)),
            seconds={gpu: each[gpu] - LAUNCH_SHARE * launch[gpu] for gpu in CARDS},
            h200=h200.get(shape),
        )
        for shape, each in found.items()
        if all(each.get(gpu, 0.0) > LAUNCHES_MIN * launch[gpu] for gpu in CARDS)
    ]


def _on_h200(operator: str) -> dict[Shape, float]:
    with gzip.open(H200, "rt") as lines:
        rows = [row for row in map(json.loads, lines) if row["op"] == operator]
    launch = min(row["latency_ms"] for row in rows)
    return {
        _shape(row): (row["latency_ms"] - LAUNCH_SHARE * launch) * 1e-3
        for row in rows
        if row["latency_ms"] > LAUNCHES_H200_MIN * launch
    }


def _shape(row: Mapping[str, Any]) -> Shape:
    return tuple(sorted((key, int(float(row[key]))) for key in row if key in DIMENSIONS))


DIMENSIONS = frozenset(
    {"batch", "m", "k", "n", "rows", "cols", "in_features", "out_features"}
    | {"in_channels", "out_channels", "kernel_size", "input_size", "stride", "padding"}
)


def view(name: str, shape: Mapping[str, int]) -> Work:
    def n(*keys: str) -> list[int]:
        return [shape[key] for key in keys]

    def f(*sizes: int) -> Shaped:
        return "f", list(sizes), True

    if name == "conv":
        batch, wide, out, size = n("batch", "in_channels", "out_channels", "input_size")
        kernel, stride, pad = n("kernel_size", "stride", "padding")
        side = (size + 2 * pad - kernel) // stride + 1
        images = [f(batch, wide, size, size), f(out, wide, kernel, kernel)]
        return work("convolution", images, [f(batch, out, side, side)], [stride, pad, 1, 0, 1])
    if name == "linear":
        rows, i, o = n("rows", "in_features", "out_features")
        return work("addmm", [f(o), f(rows, i), f(i, o)], [f(rows, o)], [])
    if name == "bmm":
        b, m, k, o = n("batch", "m", "k", "n")
        return work("bmm", [f(b, m, k), f(b, k, o)], [f(b, m, o)], [])
    grid = f(*n("rows", "cols"))
    return work(LABELS[name], [grid, grid] if name == "add" else [grid], [grid], [])
