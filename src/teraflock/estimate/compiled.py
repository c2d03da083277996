"""The time of a step under `torch.compile`, whose trace is rewritten by `workload/compiled.py`.

`lab/fit_compiled.py` fitted these numbers on 44 steps on an H200. The form of the model was chosen by leaving out one
step at a time:

- a fused kernel moves its bytes at a share of the bandwidth;
- Inductor runs convolutions in the channels-last layout, which is faster, and slower for grouped ones;
- matrix products, attention, depthwise convolutions and the optimizer take as long as without compilation;
- the host spends one amount per library call, one per fused kernel and one per trained parameter.
"""

from typing import Final

import msgspec

from teraflock.estimate.operation import Work
from teraflock.estimate.speed import PEAKS_H200, Measured, timed_h200
from teraflock.workload.trace import FUSED

LINEAR: Final = frozenset({"mm", "addmm"})
STEP: Final = 16
"""FP8 products need sizes that are multiples of this."""
FASTER: Final = 2.0
CAST_BYTES: Final = 5
CAST_REACH: Final = 0.85
"""Share of the bandwidth that a cast reaches."""


class CompiledModel(msgspec.Struct, frozen=True, kw_only=True):
    convolution: float
    """Time of a convolution, relative to the same one without compilation."""
    grouped: float
    fused: float
    """Time of a fused kernel, relative to its bytes over the bandwidth."""
    library_seconds: float
    """Host time to issue a library call; the next ones: a fused kernel, and the gradient of a parameter."""
    fused_seconds: float
    parameter_seconds: float
    spread: tuple[float, float]
    """Logarithms of measured over estimated time, 10th and 90th percentile over left-out steps, down and up."""

    @property
    def host(self) -> dict[str, float]:
        """In the form of `Measured.host`."""
        return {
            "compiled_library": self.library_seconds,
            "compiled_fused": self.fused_seconds,
            "compiled_parameter": self.parameter_seconds,
        }

    def timed(self, work: Work, known: Measured, precision: str) -> tuple[float, float]:
        """Seconds on the H200. The nearness is 0: single kernels were not measured."""
        if work.name == FUSED:
            return self.fused * work.bytes / PEAKS_H200.bandwidth, 0.0
        return self.factor(work) * timed_h200(work, known, precision)[0], 0.0

    def factor(self, work: Work) -> float:
        """Time of a library call, relative to the same one without compilation."""
        if not work.family.startswith("conv") or ":depthwise" in work.family:
            return 1.0
        return self.grouped if ":grouped" in work.family else self.convolution


class Float8(CompiledModel, frozen=True, kw_only=True):
    """torchao's float8 training: linear layers in FP8 with one scale per tensor, weights in bf16. Not measured.

    FP8 tensor cores have twice the rate of 16-bit ones, so a product that is limited by arithmetic takes half as long.
    Both of its inputs are read for their largest number, read again and written with one byte per number.
    """

    head: int
    """Rows of the output layer, which stays in bf16."""

    def timed(self, work: Work, known: Measured, precision: str) -> tuple[float, float]:
        seconds, nearness = super().timed(work, known, precision)
        m, n, k, *_ = (int(each) for each in work.dims) if work.name in LINEAR else (1, 1, 1)
        if work.name not in LINEAR or self.head in (m, n, k) or m % STEP or n % STEP or k % STEP:
            return seconds, nearness
        arithmetic = work.flops / PEAKS_H200.half > work.bytes / PEAKS_H200.bandwidth
        casts = CAST_BYTES * k * (m + n) / (CAST_REACH * PEAKS_H200.bandwidth)
        return (seconds / FASTER if arithmetic else seconds) + casts, nearness


FLOAT8_SPREAD: Final = (0.3, 0.4)
"""A guess: only two steps with FP8 were measured."""


def float8(head: int) -> Float8:
    return Float8(**{**msgspec.structs.asdict(FITTED), "head": head, "spread": FLOAT8_SPREAD})


FITTED: Final = CompiledModel(
    convolution=0.561,
    grouped=1.68,
    fused=2.0,
    library_seconds=19.3e-6,
    fused_seconds=15.7e-6,
    parameter_seconds=64.7e-6,
    spread=(0.181, 0.135),
)
