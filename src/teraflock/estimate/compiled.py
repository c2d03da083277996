"""The time of a step under `torch.compile`, whose trace is rewritten by `workload/compiled.py`.

`lab/fit_compiled.py` fitted these numbers on 21 steps on an H200. The form of the model was chosen by leaving out one
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


FITTED: Final = CompiledModel(
    convolution=0.531,
    grouped=1.72,
    fused=2.02,
    library_seconds=30.6e-6,
    fused_seconds=11.4e-6,
    parameter_seconds=58.9e-6,
    spread=(0.16, 0.14),
)
