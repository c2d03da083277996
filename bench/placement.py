"""Measure how well and how fast the placement rule packs GPUs, beside best fit and FGD.

For each seed, the pods of the list arrive in random order. If they ask for less than the cluster has, more pods are
drawn from the list with replacement. Pods never leave, and a pod that fits nowhere has failed. The allocation is the
GPU capacity in use when the arrived pods have asked for 100 % of it. The rate counts all arrivals until then, by the
processor time of one thread, without reading the lists and preparing tables of the expected pods.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from bench.figures import Figure, Section
from bench.placement_cluster import CARD, Classes, Cluster, Node, Rule
from bench.placement_lists import read_nodes, read_pods
from bench.placement_peers import BestFit, Fgd
from bench.placement_rules import LeastWaste
from bench.processes import Fault

SEEDS: Final = range(42, 52)
PLACEMENTS_PER_SECOND_MIN: Final = 10_000


def measure(nodes: Path | None = None, pods: Path | None = None) -> Iterator[Section]:
    if nodes is None or pods is None:
        yield Section(title="Placement", notes=("Not measured: add `--nodes FILE --pods FILE`",))
        return
    there, asked = read_nodes(nodes), read_pods(pods)
    models = sorted({node.model for node in there})
    classes = Classes(asked, models)
    capacity = sum(node.cards for node in there) * CARD
    if not capacity or not classes.demand.any():
        raise Fault("The placement benchmark needs nodes with GPUs and pods that ask for GPUs")
    largest = tuple(max(getattr(node, part) for node in there) for part in ("cpu", "ram", "cards"))
    rules: dict[str, Rule] = {
        "Teraflock": LeastWaste(classes, largest[2]),
        "Best fit": BestFit(classes, largest),
        "FGD": Fgd(classes),
    }
    orders = [arrivals(classes, capacity, seed) for seed in SEEDS]
    for name, rule in rules.items():
        runs = [_run(there, classes, models, rule, order, capacity) for order in orders]
        yield _section(name, runs, pods)


def arrivals(classes: Classes, capacity: int, seed: int) -> list[int]:
    """The classes of the pods in the order of arrival, until they have asked for all GPUs."""
    random = np.random.default_rng(seed)
    order: list[int] = random.permutation(classes.of_pods).tolist()
    while classes.demand[order].sum() < capacity:
        order += random.choice(classes.of_pods, size=1 + len(order) // 10).tolist()
    arrived = classes.demand[order].cumsum()
    return order[: int(np.searchsorted(arrived, capacity)) + 1]


def _run(
    nodes: Sequence[Node],
    classes: Classes,
    models: Sequence[str],
    rule: Rule,
    order: Sequence[int],
    capacity: int,
) -> tuple[float, float]:
    """The allocation in percent, and the placements per second."""
    started = time.process_time()
    cluster = Cluster(nodes, classes, models, rule)
    placed = [number for number in order if cluster.place(number) is not None]
    seconds = time.process_time() - started
    return 100 * float(classes.demand[placed].sum()) / capacity, len(order) / seconds


def _section(name: str, runs: Sequence[tuple[float, float]], pods: Path) -> Section:
    allocations, rates = zip(*runs, strict=True)
    bar = PLACEMENTS_PER_SECOND_MIN if name == "Teraflock" else None
    return Section(
        title=f"Placement of {pods.name}: {name}",
        figures=(
            Figure(what="GPU allocation", unit="%", samples=allocations),
            Figure(what="Rate", unit="placements/s", samples=rates, bar=bar, at_least=True),
        ),
        notes=(f"Mean allocation of seeds {SEEDS[0]}–{SEEDS[-1]}: {np.mean(allocations):.2f} %",),
    )
