"""How near the estimate comes on a card it has not seen: operators, and steps composed of them.

Truth are public latencies of single operators on five cards (`../shared/truth/kernels`, fp32, forward, TF32 off). A
step is composed by putting, for each operation of a zoo model that such an operator stands for, the measured shape
nearest to it, as often as its arithmetic or bytes say. Each card is held out in turn: what it reaches is fitted on the
others alone (`lab/reach.py`). Whole steps were measured on none of them, so the host, other kernels and tensor
cores are not judged here.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import hypot, log, log2
from pathlib import Path
from statistics import median

import msgspec
from lab.operators import CARDS, Latency
from lab.reach import fit, load

from bench.figures import Figure, Section
from teraflock.catalog.cards import card
from teraflock.estimate.bounds import card_model
from teraflock.estimate.cards import peaks
from teraflock.estimate.memory import Scene
from teraflock.estimate.operation import Work
from teraflock.estimate.reach import Reach, fitted
from teraflock.estimate.scaled import Scaled
from teraflock.estimate.speed import Peaks, mean_nearness, measured, seconds_h200, timed_h200
from teraflock.estimate.step import spread
from teraflock.workload.model import Workload
from teraflock.workload.zoo import ENTRIES, symbols_for, trace_for

BATCHES = {"image": (16, 64), "text": (4, 16)}
TASKS = {"image": ("train", "infer"), "text": ("train",)}
"""Convolutions were measured forward only: nets that live by them are covered in inference."""
SEQ = 384
STANDS_FOR = {
    "_softmax": "softmax", "_log_softmax": "softmax", "native_layer_norm": "ln", "gelu": "gelu", "relu": "relu",
    "clamp_min": "relu", "hardtanh": "relu", "silu": "gelu", "add": "add", "mul": "add",
}  # fmt: skip
DIFFERENT = 1.1
"""Only pairs of cards further apart than this have an order to get right."""
COVERED_MIN = 0.4
"""A step is judged where operators stand for at least this share of its time."""

Composed = list[tuple[Latency, float]]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    operators: dict[str, list[float]]
    """Operator → errors in per cent, all cards."""
    steps: dict[str, list[float]]
    """Card → errors in per cent, all steps."""
    ordered: int
    pairs: int
    covered: int
    """Steps whose truth lay between p10 and p90."""


def measure(folder: Path) -> Iterator[Section]:
    rows = load(folder)
    steps = list(composed_steps(rows))
    for title, held in (("its card held out", _card), ("its generation held out", _generation)):
        seen = {gpu: fit(rows, [each for each in CARDS if held(each) != held(gpu)]) for gpu in CARDS}
        yield _section(f"cards never measured, composed steps, {title}", judge(rows, steps, seen))
    yield _section(
        "the same, operators' times on the H200 by curve",
        judge(rows, steps, seen, by_curve=True),
    )
    shipped = dict.fromkeys(CARDS, fitted())
    yield _section(
        "the same, on cards that were fitted on: what is shipped",
        judge(rows, steps, shipped, by_curve=True, evidence="fitted"),
    )


def _card(gpu: str) -> str:
    return gpu


def _generation(gpu: str) -> str:
    return card(gpu).architecture.partition(" ")[0]


def composed_steps(rows: Sequence[Latency]) -> Iterator[tuple[str, Composed]]:
    pools: dict[str, list[Latency]] = defaultdict(list)
    for each in rows:
        if each.h200:
            pools[each.operator].append(each)
    for known in ENTRIES.values():
        for task, batch in product(TASKS.get(known.kind, ()), BATCHES.get(known.kind, ())):
            workload = Workload(
                model=known.name, task=task, batch=batch, seq=SEQ if known.kind == "text" else None
            )
            trace = trace_for(workload)
            made, share = _composed(Scene(trace, symbols_for(workload, trace), {}), pools)
            if share >= COVERED_MIN:
                yield f"{known.name} {task} {batch}", made


def _composed(scene: Scene, pools: dict[str, list[Latency]]) -> tuple[Composed, float]:
    """The step, and the share of its time on an H200 that operators stand for."""
    counts: dict[int, int] = defaultdict(int)
    for each in scene.step_works():
        counts[id(each)] += 1
    made: Composed = []
    covered = total = 0.0
    for work in scene.works:
        count = counts.get(id(work), 0)
        if not count or not work.kernel:
            continue
        seconds = count * seconds_h200(work, measured(), "fp32")
        total += seconds
        operator = _operator(work)
        if operator:
            nearest = min(pools[operator], key=lambda each: _apart(each.work, work))
            ratio = work.flops / nearest.work.flops if work.flops else work.bytes / nearest.work.bytes
            made.append((nearest, count * ratio))
            covered += seconds
    return made, covered / total


def _operator(work: Work) -> str:
    if work.family == "matmul":
        return "linear" if work.dims[3] == 1 else "bmm"
    if work.family == "convf:plain:k":
        return "conv"
    return STANDS_FOR.get(work.name.rstrip("_"), "") if work.family == "bytes" else ""


def _apart(one: Work, other: Work) -> float:
    mine, its = (one.dims, other.dims) if one.flops else ((one.bytes,), (other.bytes,))
    return sum((log2(max(1.0, a)) - log2(max(1.0, b))) ** 2 for a, b in zip(mine, its, strict=True))


def judge(
    rows: Sequence[Latency],
    steps: Sequence[tuple[str, Composed]],
    seen: dict[str, Reach],
    *,
    by_curve: bool = False,
    evidence: str = "seen",
) -> Judged:
    operators: dict[str, list[float]] = defaultdict(list)
    errors: dict[str, list[float]] = defaultdict(list)
    there = {gpu: _plain(peaks(card(gpu), reach)) for gpu, reach in seen.items()}

    def seconds(parts: Composed, gpu: str) -> float:
        items = [
            (each.work, 1, seconds_h200(each.work, measured(), "fp32") if by_curve else each.h200 or 0.0)
            for each, _ in parts
        ]
        return sum(
            weight * Scaled([item], tf32=False, reach=seen[gpu]).seconds_on(there[gpu])
            for item, (_, weight) in zip(items, parts, strict=True)
        )

    for each in rows:
        if each.h200:
            for gpu in seen:
                operators[each.operator].append(
                    100 * abs(seconds([(each, 1.0)], gpu) / each.seconds[gpu] - 1)
                )
    ordered = pairs = covered = 0
    for _, parts in steps:
        nearness = _nearness(parts) if by_curve else 1.0
        truth = {gpu: sum(weight * each.seconds[gpu] for each, weight in parts) for gpu in seen}
        said = {gpu: seconds(parts, gpu) for gpu in seen}
        for gpu in seen:
            errors[gpu].append(100 * abs(said[gpu] / truth[gpu] - 1))
            low, high = (
                hypot(each, more)
                for each, more in zip(spread(measured(), nearness), card_model().doubt[evidence], strict=True)
            )
            covered += -low <= log(truth[gpu] / said[gpu]) <= high
        for one, other in combinations(seen, 2):
            if max(truth[one], truth[other]) > DIFFERENT * min(truth[one], truth[other]):
                pairs += 1
                ordered += (truth[one] < truth[other]) == (said[one] < said[other])
    return Judged(
        operators=dict(operators), steps=dict(errors), ordered=ordered, pairs=pairs, covered=covered
    )


def _nearness(parts: Composed) -> float:
    """How much of a step lies beside operations measured on the H200."""
    timed = [(weight, *timed_h200(each.work, measured(), "fp32")) for each, weight in parts]
    return mean_nearness((weight * seconds, near) for weight, seconds, near in timed)


def _plain(found: Peaks | None) -> Peaks:
    """As the operators were measured: without TF32."""
    assert found is not None
    return msgspec.structs.replace(found, tf32=0.0)


def _section(title: str, judged: Judged) -> Section:
    everything = [each for values in judged.steps.values() for each in values]
    by_card = ", ".join(f"{gpu} {median(values):.0f} %" for gpu, values in judged.steps.items())
    by_operator = ", ".join(f"{name} {median(values):.0f} %" for name, values in judged.operators.items())
    return Section(
        title=title,
        figures=(
            Figure(what="step time, median error", unit="%", samples=(median(everything),), bar=15),
            Figure(
                what="order of two cards right", unit="%", at_least=True, bar=97,
                samples=(100 * judged.ordered / max(1, judged.pairs),),
            ),
            Figure(
                what="p10 to p90 covers (80 ± 7)", unit="%",
                samples=(100 * judged.covered / max(1, len(everything)),),
            ),
            Figure(
                what="one operator, median error", unit="%",
                samples=(median(each for values in judged.operators.values() for each in values),),
            ),
        ),
        notes=(
            f"{len(everything)} steps on {len(judged.steps)} cards, {judged.pairs} pairs",
            f"steps by card: {by_card}",
            f"operators: {by_operator}",
        ),
    )  # fmt: skip
