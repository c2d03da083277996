"""Reads the node and pod lists of the placement benchmark, in the layout of Alibaba's `cluster-trace-gpu-v2023`.

Nodes: `cpu_milli`, `memory_mib`, `gpu`, `model`. Pods: `cpu_milli`, `memory_mib`, `num_gpu`, `gpu_milli`, `gpu_spec`.
A missing column is empty, and an empty number is 0. Other columns are ignored.
"""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from bench.placement_cluster import CARD, Node, Pod
from bench.processes import Fault

Row = TypeVar("Row")


def read_nodes(path: Path) -> list[Node]:
    return _read(path, _node)


def read_pods(path: Path) -> list[Pod]:
    return _read(path, _pod)


def _read(path: Path, parse: Callable[[Mapping[str, str | None]], Row]) -> list[Row]:
    rows = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, line in enumerate(csv.DictReader(file), start=2):
                try:
                    rows.append(parse(line))
                except ValueError as error:
                    raise Fault(f"{path}, row {number}: {error}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Fault(f"{path} cannot be read: {error}") from None
    if not rows:
        raise Fault(f"{path} has no rows")
    return rows


def _node(line: Mapping[str, str | None]) -> Node:
    return Node(
        cpu=_number(line, "cpu_milli"),
        ram=_number(line, "memory_mib"),
        cards=_number(line, "gpu"),
        model=line.get("model") or "",
    )


def _pod(line: Mapping[str, str | None]) -> Pod:
    cards, milli = _number(line, "num_gpu"), _number(line, "gpu_milli")
    if milli > CARD:
        raise ValueError(f"`gpu_milli` is {milli}, but a card has {CARD}")
    share = (milli or CARD) if cards == 1 else CARD
    return Pod(
        cpu=_number(line, "cpu_milli"),
        ram=_number(line, "memory_mib"),
        cards=cards,
        share=share if cards else 0,
        models=tuple(sorted(filter(None, (line.get("gpu_spec") or "").split("|")))),
    )


def _number(line: Mapping[str, str | None], column: str) -> int:
    text = (line.get(column) or "").strip()
    try:
        number = int(float(text or 0))
    except (ValueError, OverflowError):
        raise ValueError(f"`{column}` is not a number: {text[:40]}") from None
    if number < 0:
        raise ValueError(f"`{column}` is negative: {text[:40]}")
    return number
