"""The question and the result of an estimate, as the command line, the API and the planner use them."""

from collections.abc import Sequence
from typing import Final

import msgspec

from teraflock.catalog.model import Card
from teraflock.estimate.cpu import OnCpu
from teraflock.estimate.step import SHARED, Host, Seconds
from teraflock.workload.model import Workload

GPUS_MAX: Final = 8  # in one machine; estimates do not cover more


class Limit(msgspec.Struct, frozen=True):
    """A memory limit instead of a card: what PyTorch may reserve."""

    text: str
    size_bytes: int
    label: bool = False
    """Whether the text is the advertised memory of a card, of which `size_bytes` are available to PyTorch."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    cards: Sequence[Card] = ()
    limits: Sequence[Limit] = ()
    gpus: int = 1
    """GPUs in total, in one machine."""
    tensor_parallel: int = 1
    """How many GPUs run each batch together. A divisor of `gpus`."""
    global_batch: int | None = None
    """Samples per step on all GPUs together, if that was asked. They may not divide evenly: each GPU has at most the
    workload's batch."""
    stage: int = 0
    """The ZeRO stage, as in `Survey`."""
    offload: bool = False
    """The host keeps the optimizer's state and runs its step."""
    steps: float | None = None
    samples: float | None = None
    """Samples to process in total: epochs times samples."""
    cpu_cores: int = 0
    """Cores for an estimate without a GPU. 0 for none."""
    host: Host = SHARED
    """Whether the CPU cores are shared with others, or their pace."""
    expandable_segments: bool = False

    @property
    def groups(self) -> int:
        """How many batches run at the same time."""
        return self.gpus // self.tensor_parallel


class OnGpu(msgspec.Struct, frozen=True, kw_only=True):
    gpu: str
    fits: bool
    oom_probability: float
    largest_batch: int | None
    step_seconds: Seconds | None
    samples_per_second: float | None
    evidence: str
    memory_bytes: int
    """What PyTorch may reserve on this GPU."""
    need_bytes: int
    bound: str = ""
    """What limits the speed of a step: `gpu` or `host`. Empty if unknown."""
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
    cpu: OnCpu | None = None
    """The same step without a GPU."""
    assumptions: list[str] = []
    """What was computed or assumed about several GPUs and the host."""
