"""Suggests changes for a workload that fits on no card: a smaller batch, checkpointing, LoRA, 16 bits, more GPUs."""

from collections.abc import Iterator
from typing import Any

import msgspec

from teraflock.base.errors import BadInput
from teraflock.base.quantities import GIB
from teraflock.estimate.batch import LIMIT_SHARE
from teraflock.estimate.estimator import Estimator
from teraflock.estimate.memory import plain_peak
from teraflock.estimate.model import Estimate
from teraflock.workload.model import Workload


def advice(estimate: Estimate, room_bytes: int) -> Iterator[str]:
    workload = estimate.workload
    largest = max((row.largest_batch or 0 for row in estimate.gpus), default=0)
    if largest:
        yield f"a batch of {largest}" + (" or less" if largest > 1 else "")
        yield from _spread(workload, largest, room_bytes)
    changes: list[tuple[str, dict[str, Any]]] = []
    if workload.task == "train":
        if not workload.gradient_checkpointing:
            changes.append(("gradient checkpointing", {"gradient_checkpointing": True}))
        if workload.precision in ("fp32", "tf32"):
            changes.append(("bf16 autocast", {"precision": "amp-bf16"}))
        if workload.precision not in ("bf16", "fp16"):
            changes.append(("bf16 weights", {"precision": "bf16"}))
        if not workload.lora_rank:
            changes.append(("LoRA of rank 16", {"lora_rank": 16}))
            changes.append(
                (
                    "LoRA, checkpointing and bf16 weights",
                    {"lora_rank": 16, "gradient_checkpointing": True, "precision": "bf16"},
                )
            )
        if not workload.load_in:
            fields = {"gradient_checkpointing": True, "precision": "bf16", "load_in": "4bit"}
            rank = workload.lora_rank or 16
            changes.append(("LoRA over 4-bit weights, and checkpointing", {"lora_rank": rank, **fields}))
    elif workload.precision == "fp32":
        changes.append(("bf16 weights", {"precision": "bf16"}))
    for name, fields in changes:
        need = _need(msgspec.structs.replace(workload, **fields))
        if need is not None:
            verdict = "fits" if need < LIMIT_SHARE * room_bytes else "not enough on its own"
            yield f"{name}: {need / GIB:.1f} GiB instead of {estimate.memory.live_peak_bytes / GIB:.1f} ({verdict})"
    states = sum(estimate.memory.breakdown.get(kind, 0) for kind in ("parameters", "gradients", "optimizer"))
    rest = estimate.memory.live_peak_bytes - states
    if states and rest < room_bytes:
        gpus = -(-states // max(1, room_bytes - rest))
        yield f"{gpus} or more GPUs that shard weights, gradients and optimizer state ({states / GIB:.1f} GiB)"


def _spread(workload: Workload, largest: int, room_bytes: int) -> Iterator[str]:
    """The same samples on several GPUs of one machine, each with a copy of the model and the gradient buckets."""
    for gpus in (2, 4, 8):
        share = -(-workload.batch // gpus)
        if share > largest:
            continue
        estimator = Estimator(msgspec.structs.replace(workload, batch=share))
        need = estimator.memory().live_peak_bytes + estimator.gradient_bytes()
        if need < LIMIT_SHARE * room_bytes:
            yield f"{gpus} GPUs with a batch of {share} on each: {need / GIB:.1f} GiB on each (fits)"
            return


def _need(workload: Workload) -> int | None:
    """The live peak as a plain sum: a replay for each suggestion takes most of the time of an answer."""
    try:
        estimator = Estimator(workload)
    except BadInput:
        return None  # the zoo has no trace of this variant
    peak = plain_peak(estimator.scene(), estimator.optimizer, cublas_bytes=estimator.cublas_bytes)
    return peak + sum(estimator.held().values())
