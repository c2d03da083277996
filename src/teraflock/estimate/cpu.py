"""A rough estimate of a step on CPU cores alone, to answer "do I need a GPU?".

Computed, not measured: each operation is limited by arithmetic or by memory. The interval is wide, because processors,
their vector units and PyTorch's CPU kernels differ that much.
"""

from typing import Final

import msgspec

from teraflock.estimate.step import Seconds, StepWork

CORES: Final = 16
CORES_MAX: Final = 1024
FLOPS_PER_CORE: Final = 50e9
"""Assumed: half of the peak of a server core with AVX2 at about 3 GHz."""
BYTES_PER_SECOND: Final = 80e9
"""Assumed memory bandwidth of a server that tenants share, however many cores."""
FASTEST, SLOWEST = 0.5, 2.5
"""The 10th and 90th percentile relative to the estimate."""


class OnCpu(msgspec.Struct, frozen=True, kw_only=True):
    cores: int
    step_seconds: Seconds
    samples_per_second: float | None
    evidence: str
    hours: Seconds | None = None


def on_cpu(step: StepWork, cores: int, samples: int, steps: float | None, *, parts: float = 1) -> OnCpu:
    """Estimate a step on so many cores. `step` is the part of one of `parts` GPUs: the cores compute all of them.
    `steps` is the amount of work, if known."""
    rate = cores * FLOPS_PER_CORE
    middle = parts * sum(max(flops / rate, moved / BYTES_PER_SECOND) for flops, moved in step.loads())
    seconds = Seconds(middle * FASTEST, middle, middle * SLOWEST)
    hours = (
        None
        if steps is None
        else Seconds(*(each * steps / 3600 for each in msgspec.structs.astuple(seconds)))
    )
    return OnCpu(
        cores=cores,
        step_seconds=seconds,
        samples_per_second=samples / middle if samples and middle else None,
        evidence="very rough: computed from arithmetic and memory traffic in fp32, not measured",
        hours=hours,
    )
