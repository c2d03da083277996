"""What is asked of an estimate, and what it says: everything the command line and others read."""

from collections.abc import Sequence
from typing import Final

import msgspec

from teraflock.catalog.model import Card
from teraflock.estimate.step import SHARED, Seconds
from teraflock.workload.model import Workload

GPUS_MAX: Final = 8  # of one machine: beyond it no estimate is made


class Limit(msgspec.Struct, frozen=True):
    """A bare budget in place of a card: what PyTorch may reserve."""

    text: str
    size_bytes: int
    label: bool = False
    """Asked for as a card sold with so much, of which `size_bytes` are left to PyTorch."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    cards: Sequence[Card] = ()
    limits: Sequence[Limit] = ()
    gpus: int = 1
    """In all, of one machine."""
    tensor_parallel: int = 1
    """So many of them run each batch together; a divisor of `gpus`."""
    steps: float | None = None
    samples: float | None = None
    """Samples to see in all: epochs times samples."""
    host: str = SHARED
    """Whose cores issue the steps: one of `HOSTS`."""
    expandable_segments: bool = False

    @property
    def groups(self) -> int:
        """How many batches run side by side."""
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
    """What PyTorch may reserve there."""
    need_bytes: int
    bound: str = ""
    """What decides how long a step takes, `gpu` or `host`; empty where that cannot be told."""
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
