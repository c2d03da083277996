"""The answer: one workload on many cards. Everything the command line and others read is made here."""

from collections.abc import Sequence
from math import erf, hypot, sqrt
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.base.quantities import GIB, MIB
from teraflock.catalog.model import Card
from teraflock.estimate import parallel
from teraflock.estimate.batch import LIMIT_SHARE, BatchFinder
from teraflock.estimate.cards import (
    GENERATIONS,
    MEASURED_ID,
    context_bytes,
    generation,
    peaks,
    refuses,
    reservable_bytes,
)
from teraflock.estimate.memory import Memory, Scene, plain_peak, replay
from teraflock.estimate.reach import CHIP_DOUBT, is_measured
from teraflock.estimate.speed import measured
from teraflock.estimate.step import Seconds, StepWork
from teraflock.estimate.workspace import CUBLAS_WORKSPACE_BYTES
from teraflock.workload import zoo
from teraflock.workload.expression import folded_all
from teraflock.workload.model import Workload, checked, is_trace
from teraflock.workload.trace import DTYPE_BYTES, Trace, read_trace_file

EXACT_CARDS_MAX: Final = 3  # beyond, largest batches are drawn from one replayed answer
OOM_SPREAD: Final = 0.02
"""Standard deviation of measured over predicted limits."""


class Limit(msgspec.Struct, frozen=True):
    """A bare budget in place of a card: what PyTorch may reserve."""

    text: str
    size_bytes: int


class OnGpu(msgspec.Struct, frozen=True, kw_only=True):
    gpu: str
    fits: bool
    oom_probability: float
    largest_batch: int | None
    step_seconds: Seconds | None
    samples_per_second: float | None
    evidence: str
    memory_bytes: int
    """What PyTorch may reserve there."""
    need_bytes: int
    hours: Seconds | None = None


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    live_peak_bytes: int
    reserved_peak_bytes: int
    device_peak_bytes: int
    breakdown: dict[str, int]


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    workload: Workload
    memory: Peak
    gpus: list[OnGpu]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    cards: Sequence[Card] = ()
    limits: Sequence[Limit] = ()
    gpus: int = 1
    steps: float | None = None
    samples: float | None = None
    """Samples to see in all: epochs times samples."""
    expandable_segments: bool = False
    coarse: bool = False
    """Largest batches on cards to two per cent, for many workloads in one go. Limits stay exact."""


class Estimator:
    """One workload with its trace; asks the replay and the clock only for what is wanted."""

    def __init__(self, workload: Workload) -> None:
        self.is_trace = is_trace(workload.model)
        if self.is_trace:
            self.trace = read_trace_file(workload.model)
            self.workload = _of_trace(workload, self.trace)
        else:
            self.workload = zoo.with_sizes(checked(workload))
            self.trace = zoo.trace_for(self.workload)
        # Of all symbols only the batch is ever asked for in several sizes.
        fixed = {
            name: size for name, size in zoo.symbols_for(self.workload, self.trace).items() if name != "batch"
        }
        self.trace = msgspec.structs.replace(
            self.trace, expressions=folded_all(self.trace.expressions, fixed)
        )
        self.known = measured()
        self.optimizer = self.workload.optimizer if self.workload.task == "train" else "none"
        self.cublas_bytes = CUBLAS_WORKSPACE_BYTES["Hopper"]
        self._lean_scenes: dict[int, Scene] = {}

    @property
    def is_generator(self) -> bool:
        return not self.is_trace and zoo.entry(self.workload.model).kind == "generator"

    def scene(self, batch: int | None = None) -> Scene:
        workload = self.workload if batch is None else msgspec.structs.replace(self.workload, batch=batch)
        symbols = zoo.symbols_for(workload, self.trace)
        return Scene(self.trace, symbols, self.known.workspace)

    def lean_scene(self, batch: int) -> Scene:
        """As short of memory; kept, since every search looks at the same few batches again."""
        if batch not in self._lean_scenes:
            workload = msgspec.structs.replace(self.workload, batch=batch)
            symbols = zoo.symbols_for(workload, self.trace)
            self._lean_scenes[batch] = Scene(self.trace, symbols, self.known.workspace, lean=True)
        return self._lean_scenes[batch]

    def memory(self, *, expandable_segments: bool = False) -> Memory:
        return replay(
            self.scene(),
            self.optimizer,
            cublas_bytes=self.cublas_bytes,
            expandable_segments=expandable_segments,
            held=self.held(),
        )

    def held(self) -> dict[str, int]:
        """What the trace does not show, by kind."""
        return {"k": self.kv_cache_bytes()}

    def kv_cache_bytes(self) -> int:
        if not self.workload.kv_cache or self.is_trace:
            return 0
        size = 2 if self.workload.precision != "fp32" else 4
        tokens = self.workload.batch * (self.workload.seq or 0)
        return zoo.entry(self.workload.model).kv_elements_per_token * tokens * size

    def gradient_bytes(self) -> int:
        scene = self.scene()
        total = 0
        for shape, dtype in scene.parameter_sizes():
            size = DTYPE_BYTES[dtype]
            for each in shape:
                size *= each
            total += size
        return total


def answer(workload: Workload, question: Question) -> Estimate:
    estimator = Estimator(workload)
    scene = estimator.scene()
    memory = estimator.memory(expandable_segments=question.expandable_segments)
    step = step_of(estimator, scene)
    buckets = estimator.gradient_bytes() if question.gpus > 1 else 0
    finder = finder_for(estimator, buckets)
    need = need_bytes(estimator, finder)
    reference = reference_bytes(question.cards, estimator.workload.precision)
    rows = [_on_limit(estimator, finder, limit, need) for limit in question.limits]
    for card in question.cards:
        exact = len(question.cards) <= EXACT_CARDS_MAX and not question.coarse
        rows.append(_on_card(estimator, finder, step, card, question, reference, buckets, need, exact=exact))
    return Estimate(
        workload=estimator.workload,
        memory=Peak(
            live_peak_bytes=memory.live_peak_bytes,
            reserved_peak_bytes=memory.reserved_peak_bytes,
            device_peak_bytes=memory.reserved_peak_bytes + _context_bytes(scene, estimator.workload),
            breakdown=memory.breakdown,
        ),
        gpus=rows,
    )


def step_of(estimator: Estimator, scene: Scene) -> StepWork:
    return StepWork(
        scene,
        estimator.optimizer,
        estimator.known,
        tf32=estimator.workload.precision == "tf32",
        drag=estimator.known.drag[0] if estimator.is_generator else 1.0,
    )


def reference_bytes(cards: Sequence[Card], precision: str) -> int:
    """The memory of a middling card among those that can run it: where one answer is replayed for all."""
    able = sorted(size for card in cards if (size := reservable_bytes(card)) and not refuses(card, precision))
    return (able[(len(able) - 1) // 2] + able[len(able) // 2]) // 2 if able else 0


def finder_for(estimator: Estimator, extra_bytes: int) -> BatchFinder | None:
    """`None` for a trace that stands for one batch only."""
    if "batch" not in estimator.trace.symbols:
        return None
    return BatchFinder(
        estimator.lean_scene,
        estimator.optimizer,
        estimator.cublas_bytes,
        extra_bytes=extra_bytes + sum(estimator.held().values()),
        near=estimator.workload.batch,
        share=LIMIT_SHARE
        if any(each.name.startswith("convolution") for each in estimator.trace.operations)
        else 1.0,
    )


def _on_limit(estimator: Estimator, finder: BatchFinder | None, limit: Limit, need: int) -> OnGpu:
    largest = finder.largest(limit.size_bytes) if finder else None
    return OnGpu(
        gpu=limit.text,
        fits=largest >= estimator.workload.batch
        if largest is not None
        else need <= LIMIT_SHARE * limit.size_bytes,
        oom_probability=_oom_probability(need, limit.size_bytes),
        largest_batch=largest,
        step_seconds=None,
        samples_per_second=None,
        evidence="replay of the allocator under this limit, with the kernels of an H200",
        memory_bytes=limit.size_bytes,
        need_bytes=need,
    )


def _on_card(
    estimator: Estimator,
    finder: BatchFinder | None,
    step: StepWork,
    card: Card,
    question: Question,
    reference: int,
    buckets: int,
    need: int,
    *,
    exact: bool,
) -> OnGpu:
    room = reservable_bytes(card)
    refused = refuses(card, estimator.workload.precision)
    if refused:
        return OnGpu(
            gpu=card.id, fits=False, oom_probability=1.0, largest_batch=0, step_seconds=None,
            samples_per_second=None, evidence=refused, memory_bytes=room, need_bytes=need,
        )  # fmt: skip
    largest: int | None = None
    if finder is not None:
        largest = finder.largest(room) if exact else finder.largest_near(room, reference)
    fits = largest >= estimator.workload.batch if largest is not None else need <= LIMIT_SHARE * room
    seconds = seconds_on(estimator, step, card, buckets, question.gpus)
    samples = estimator.workload.batch * question.gpus
    return OnGpu(
        gpu=card.id,
        fits=fits,
        oom_probability=_oom_probability(need, room),
        largest_batch=largest,
        step_seconds=seconds,
        samples_per_second=samples / seconds.p50 if seconds and samples else None,
        evidence=_evidence(card),
        memory_bytes=room,
        need_bytes=need,
        hours=_hours(seconds, samples, question),
    )


def need_bytes(estimator: Estimator, finder: BatchFinder | None) -> int:
    if finder is not None:
        return finder.need_bytes(estimator.workload.batch)
    scene = estimator.lean_scene(estimator.workload.batch)
    return plain_peak(scene, estimator.optimizer, cublas_bytes=estimator.cublas_bytes)


def seconds_on(
    estimator: Estimator, step: StepWork, card: Card, buckets: int = 0, gpus: int = 1
) -> Seconds | None:
    """One step on each of so many GPUs; `None` for a card whose time cannot be told."""
    there, known = peaks(card), generation(card)
    if there is None or known is None:
        return None
    width = 1.0 if card.id == MEASURED_ID else known.width
    alone = step.seconds(there)
    doubt = 0.0 if card.id == MEASURED_ID or is_measured(card) else CHIP_DOUBT
    if estimator.is_generator:
        doubt = hypot(doubt, estimator.known.drag[1])
    spread = step.interval(alone, there, estimator.known, width, doubt)
    middle = parallel.step_seconds(alone, buckets, card, gpus)
    factor = middle / alone
    return Seconds(spread.p10 * factor, middle, spread.p90 * factor)


def _hours(seconds: Seconds | None, samples: int, question: Question) -> Seconds | None:
    steps = question.steps
    if steps is None and question.samples is not None and samples:
        steps = question.samples / samples
    if seconds is None or steps is None:
        return None
    return Seconds(*(each * steps / 3600 for each in (seconds.p10, seconds.p50, seconds.p90)))


def _evidence(card: Card) -> str:
    if card.id == MEASURED_ID:
        return "measured on this card: curves fitted on 102 runs, judged on others"
    known = generation(card)
    if peaks(card) is None:
        return "memory alone: no rates of this card are known"
    return known.evidence if known else "not estimated"


def _oom_probability(need_bytes: int, room_bytes: int) -> float:
    if room_bytes <= 0:
        return 1.0
    over = need_bytes / (LIMIT_SHARE * room_bytes) - 1
    return round(0.5 * (1 + erf(over / OOM_SPREAD / sqrt(2))), 3)


def _context_bytes(scene: Scene, workload: Workload) -> int:
    """CUDA context and libraries on Hopper: more libraries load with convolutions, 16 bits and training."""
    if workload.task == "infer":
        return 694 * MIB
    if not any(scene.matmuls):
        return 641 * MIB
    convolutions = any(work.family.startswith("conv") for work in scene.works)
    return (769 if convolutions or workload.precision not in ("fp32", "tf32") else 751) * MIB


def _of_trace(workload: Workload, trace: Trace) -> Workload:
    """A trace says itself what it is; the batch may be chosen where it is a symbol."""
    if workload.batch < 0:
        raise BadInput(f"A batch holds at least one sample, not {workload.batch}")
    batch = workload.batch or trace.symbols.get("batch") or trace.samples
    if "batch" not in trace.symbols and workload.batch and trace.samples and workload.batch != trace.samples:
        raise BadInput(
            f"This trace was recorded with a batch of {trace.samples} and cannot answer for {workload.batch}",
            hint="Record it again with that batch, or let `--entry` take the batch as an argument",
        )
    return msgspec.structs.replace(
        workload,
        batch=batch,
        precision=trace.precision,
        task="train" if trace.has_backward else "infer",
        optimizer=workload.optimizer if not trace.has_optimizer else "",
    )


__all__ = ["GENERATIONS", "GIB", "Estimate", "Estimator", "Limit", "Question", "answer", "context_bytes"]
