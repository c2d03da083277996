"""Estimates one workload on many cards."""

from collections.abc import Iterator
from math import erf, sqrt
from typing import Final

import msgspec

from teraflock.base.quantities import GIB, MIB
from teraflock.catalog.model import Card
from teraflock.estimate.batch import LIMIT_SHARE, BatchFinder
from teraflock.estimate.cards import evidence, known_peaks, refuses, reservable_bytes
from teraflock.estimate.cpu import OnCpu, on_cpu
from teraflock.estimate.estimator import Estimator, seconds_on, step_of
from teraflock.estimate.memory import Scene
from teraflock.estimate.model import Estimate, Limit, OnGpu, Peak, Question
from teraflock.estimate.parallel import assumptions
from teraflock.estimate.speed import Peaks
from teraflock.estimate.step import Seconds, StepWork
from teraflock.estimate.survey import Survey
from teraflock.workload.model import Workload
from teraflock.workload.zoo import config_notes

COMPUTED: Final = "tensor parallelism is computed, not measured; the rest: "
SEVERAL: Final = "several GPUs are computed, not measured; the rest: "
FLOAT8: Final = "FP8 is computed from tensor rates; two steps on an H200 took 6 and 14 % longer; the rest: "
QUANTIZED: Final = {
    "4bit": "4-bit products: fitted on 2 steps of an H200, typical error 12 % on 4 others; the rest: ",
    "8bit": "8-bit products: fitted on 2 steps of an H200, errors of 0 and 8 % on 2 others; the rest: ",
}
COMPILED: Final = "torch.compile: typical error 9 % on 16 other steps of an H200; operations: "
PACED: Final = "; host as you stated, {:g} times the time of the measured one"
OOM_SPREAD: Final = 0.02
"""Standard deviation of measured over predicted limits."""
OOM_SPREAD_COMPILED: Final = 0.12
"""The same under `torch.compile`, from the live peaks of 60 steps."""


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """Values that do not depend on the card, computed once."""

    question: Question
    estimator: Estimator
    step: StepWork
    survey: Survey
    finder: BatchFinder | None
    need: int


def answer(workload: Workload, question: Question) -> Estimate:
    survey = Survey(
        workload,
        stage=question.stage,
        offload=question.offload,
        tensor_parallel=question.tensor_parallel,
    )
    estimator = survey.estimator
    scene = estimator.scene()
    memory = estimator.memory(expandable_segments=question.expandable_segments)
    step = step_of(estimator, scene, host=question.host)
    finder, need = survey.finder(question.groups)
    known = _Known(question=question, estimator=estimator, step=step, survey=survey, finder=finder, need=need)
    return Estimate(
        workload=estimator.workload,
        memory=Peak(
            live_peak_bytes=memory.live_peak_bytes,
            reserved_peak_bytes=memory.reserved_peak_bytes,
            device_peak_bytes=memory.reserved_peak_bytes + _context_bytes(scene, estimator.workload),
            breakdown=memory.breakdown,
        ),
        gpus=[
            *(_on_limit(known, limit) for limit in question.limits),
            *(_on_card(known, card) for card in question.cards),
        ],
        cpu=_on_cpu(known) if question.cpu_cores and question.tensor_parallel == 1 else None,
        assumptions=[
            *_of_config(estimator),
            *_shared_out(known),
            *assumptions(
                groups=question.groups,
                exchanges=survey.exchanged_bytes > 0,
                tensor_parallel=question.tensor_parallel,
                stage=question.stage,
                offload=question.offload,
            ),
        ],
    )


def _on_cpu(known: _Known) -> OnCpu:
    question, samples = known.question, _samples(known)
    total, batch = question.global_batch, known.estimator.workload.batch
    parts = total / batch if total is not None else question.groups
    return on_cpu(known.step, question.cpu_cores, samples, _steps(samples, question), parts=parts)


def _samples(known: _Known) -> int:
    """Samples of one step on all GPUs together."""
    question, workload = known.question, known.estimator.workload
    return (question.global_batch or workload.batch * question.groups) * workload.accumulate


def _of_config(estimator: Estimator) -> list[str]:
    workload = estimator.workload
    return [] if estimator.is_trace else config_notes(workload.model, workload.seq)


def _shared_out(known: _Known) -> Iterator[str]:
    """What each GPU has of a global batch."""
    total, groups, batch = known.question.global_batch, known.question.groups, known.estimator.workload.batch
    if total is not None and groups > 1:
        among = f"{groups} GPUs" if known.question.tensor_parallel == 1 else f"{groups} groups of GPUs"
        passes = known.estimator.workload.accumulate
        each_pass = f" in each of {passes} passes" if passes > 1 else ""
        share = f"{'' if batch * groups == total else 'at most '}{batch:,} on each"
        yield f"{total:,} samples{each_pass} on {among}: {share}"


def _on_limit(known: _Known, limit: Limit) -> OnGpu:
    largest = _largest(known, limit.size_bytes)
    return OnGpu(
        gpu=limit.text,
        fits=_fits(known, largest, limit.size_bytes),
        oom_probability=_oom_probability(known, limit.size_bytes),
        largest_batch=largest,
        step_seconds=None,
        samples_per_second=None,
        evidence="allocator replay with the kernels of an H200, "
        + (
            f"{limit.size_bytes / GIB:.1f} GiB available to PyTorch"
            if limit.label
            else "all of it available to PyTorch"
        ),
        memory_bytes=limit.size_bytes,
        need_bytes=known.need,
    )


def _on_card(known: _Known, card: Card) -> OnGpu:
    room, workload, question = reservable_bytes(card), known.estimator.workload, known.question
    refused = refuses(card, workload.precision)
    if refused:
        return OnGpu(
            gpu=card.id, fits=False, oom_probability=1.0, largest_batch=0, step_seconds=None,
            samples_per_second=None, evidence=refused, memory_bytes=room, need_bytes=known.need,
        )  # fmt: skip
    largest, there = _largest(known, room), known_peaks(card)
    seconds = _seconds(known, card)
    samples = _samples(known)
    return OnGpu(
        gpu=card.id,
        fits=_fits(known, largest, room),
        oom_probability=_oom_probability(known, room),
        largest_batch=largest,
        step_seconds=seconds,
        samples_per_second=samples / seconds.p50 if seconds and samples else None,
        bound=_bound(known.step, there),
        evidence=_evidence(known, card, there),
        memory_bytes=room,
        need_bytes=known.need,
        hours=_hours(seconds, samples, question),
    )


def _seconds(known: _Known, card: Card) -> Seconds | None:
    groups = known.question.groups
    exchanged = known.survey.exchanged_bytes if groups > 1 else 0.0
    found = seconds_on(known.estimator, known.step, card, exchanged, groups)
    more = known.survey.offload_seconds(card, groups)
    if not more or found is None:
        return found
    return Seconds(*((1 + more / found.p50) * each for each in (found.p10, found.p50, found.p90)))


def _largest(known: _Known, room: int) -> int | None:
    return known.finder.largest(room) if known.finder else None


def _fits(known: _Known, largest: int | None, room: int) -> bool:
    if largest is None:
        return known.need <= LIMIT_SHARE * room
    return largest >= known.estimator.workload.batch


def _hours(seconds: Seconds | None, samples: int, question: Question) -> Seconds | None:
    steps = _steps(samples, question)
    if seconds is None or steps is None:
        return None
    return Seconds(*(each * steps / 3600 for each in (seconds.p10, seconds.p50, seconds.p90)))


def _steps(samples: int, question: Question) -> float | None:
    if question.steps is None and question.samples is not None and samples:
        return question.samples / samples
    return question.steps


def _bound(step: StepWork, there: Peaks | None) -> str:
    if there is None:
        return ""
    return "host" if step.waits_for_host(there) else "gpu"


def _evidence(known: _Known, card: Card, there: Peaks | None) -> str:
    if there is None:
        return "memory only: the speed of this card is unknown"
    question = known.question
    split = COMPUTED if question.tensor_parallel > 1 else SEVERAL if question.groups > 1 else ""
    workload = known.estimator.workload
    how = FLOAT8 if workload.precision == "fp8" else COMPILED if workload.compile else ""
    host = "" if isinstance(question.host, str) else PACED.format(question.host)
    return split + how + QUANTIZED.get(workload.load_in, "") + evidence(card) + host


def _oom_probability(known: _Known, room_bytes: int) -> float:
    if room_bytes <= 0:
        return 1.0
    over = known.need / (LIMIT_SHARE * room_bytes) - 1
    spread = OOM_SPREAD_COMPILED if known.estimator.workload.compile else OOM_SPREAD
    return round(0.5 * (1 + erf(over / spread / sqrt(2))), 3)


def _context_bytes(scene: Scene, workload: Workload) -> int:
    """CUDA context and libraries on Hopper. Convolutions, 16-bit precisions and training load more libraries."""
    if workload.task == "infer":
        return 694 * MIB
    if not any(scene.matmuls):
        return 641 * MIB
    convolutions = any(work.family.startswith("conv") for work in scene.works)
    return (769 if convolutions or workload.precision not in ("fp32", "tf32") else 751) * MIB
