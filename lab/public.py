"""Reads whole steps on other cards from public tables: `public_steps.csv`, which is not part of the project.

A row counts if its note begins with `ok`. For the others there is a known reason why a correct estimate can be wrong;
those marked as bound by the host show how slow the host of their table was (`paces`).
Models that are not in the zoo are skipped, unless a folder has their traces (`lab/public_models.py`).
"""

import csv
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

import msgspec

from teraflock.catalog.cards import card
from teraflock.catalog.model import Card
from teraflock.estimate.memory import Scene
from teraflock.estimate.speed import measured
from teraflock.estimate.step import SHARED, StepWork
from teraflock.workload import zoo
from teraflock.workload.model import Workload
from teraflock.workload.trace import Trace, read_trace_file

SOUND = "ok"
HOST_BOUND = "weak: probably bound by the host"
QUESTIONS = "train-qa"
"""BERT with a head for question answering. Without a trace of it, the zoo's BERT is used instead."""


class PublicStep(msgspec.Struct, frozen=True):
    card: Card
    workload: Workload
    source: str
    seconds: float
    step: StepWork

    @property
    def host(self) -> tuple[str, str, str]:
        """Rows with the same key were measured on the same machine."""
        return self.source, self.card.id, self.workload.task


def paces(path: Path) -> dict[tuple[str, str, str], float]:
    """Pace of the host by table, card and task, from rows that no fit and no judgement uses."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for each in public_steps(path, note=HOST_BOUND):
        found[each.host].append(each.step.pace_where_host_takes(each.seconds))
    return {host: median(its) for host, its in found.items()}


def public_steps(path: Path, traces: Path | None = None, *, note: str = SOUND) -> Iterator[PublicStep]:
    with path.open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["note"].startswith(note)]
    for row in rows:
        made = _step(tuple(row[each] for each in COLUMNS), traces)
        if made is not None:
            workload, step = made
            yield PublicStep(card(row["gpu"]), workload, row["source"], float(row["step_seconds"]), step)


COLUMNS = ("model", "task", "batch", "seq", "image_size", "precision", "optimizer")


@cache
def _step(values: tuple[str, ...], traces: Path | None) -> tuple[Workload, StepWork] | None:
    row = dict(zip(COLUMNS, values, strict=True))
    workload = Workload(
        model=row["model"],
        task="infer" if row["task"] == "infer" else "train",
        batch=int(row["batch"]),
        seq=int(row["seq"]) if row["seq"] else None,
        image_size=int(row["image_size"]) if row["image_size"] else None,
        precision=row["precision"],
        optimizer="sgd" if row["optimizer"] in ("", "none") else row["optimizer"],
    )
    found = _trace(workload, row["task"], traces)
    if found is None:
        return None
    workload, trace = found
    optimizer = "none" if workload.task == "infer" else row["optimizer"] or "none"
    scene = Scene(trace, zoo.symbols_for(workload, trace), measured().workspace)
    step = StepWork(scene, optimizer, measured(), workload.precision, host=SHARED, model=row["model"])
    return workload, step


def _trace(workload: Workload, task: str, traces: Path | None) -> tuple[Workload, Trace] | None:
    if task == QUESTIONS and traces is not None:
        # apex kept the weights in 16 bits
        precision = "fp16" if workload.precision == "amp-fp16" else workload.precision
        halved = msgspec.structs.replace(workload, precision=precision)
        return halved, read_trace_file(str(traces / f"{workload.model}-qa+{zoo.variant(halved)}.trace"))
    if workload.model in zoo.ENTRIES:
        workload = zoo.with_sizes(workload)
        return workload, zoo.trace_for(workload)
    path = traces / f"{workload.model}+{zoo.variant(workload)}.trace" if traces else None
    return (workload, read_trace_file(str(path))) if path and path.exists() else None
